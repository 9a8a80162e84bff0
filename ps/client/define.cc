#include "ps/client/define.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "ps/client/cut.h"
#include "ps/client/fanout.h"
#include "ps/client/random_id.h"
#include "ps/client/reach.h"
#include "ps/model/wire.h"
#include "ps/wire/ps.pb.h"
#include "tensor_service/calls.h"
#include "transport/base/steady_time.h"

namespace penstock::ps {
namespace {

// The time after which calls request a new view of the shards. Longer than a
// failover.
constexpr absl::Duration kLookAgainEvery = absl::Seconds(10);

using Replies = std::vector<v1::GetModelReply>;

absl::Duration Until(absl::Time limit) { return limit - base::SteadyNow(); }

absl::Status Check(const Definition& definition) {
  if (definition.servers.empty() ||
      definition.servers.size() != definition.addresses.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "define: there are ", definition.servers.size(), " channels and ",
        definition.addresses.size(), " addresses: give one of each server"));
  }
  return CheckModel(definition.model);
}

std::string NameOf(const Definition& definition, size_t server) {
  return absl::StrCat("server ", server, " (", definition.addresses[server],
                      ")");
}

// A run that cannot continue, because some servers have lost their part of it.
struct LostRun {
  RunAndCut run;
  bool has_values = false;           // true if a server still has its values
  std::vector<std::string> missing;  // names of the servers without the run
};

// Returns the run that was trained at some servers and is missing at others.
// Returns nullopt if there are two such runs: they belong to different
// trainings, and no run was lost.
absl::optional<LostRun> FindLost(const Definition& definition,
                                 const Replies& replies) {
  LostRun lost;
  if (definition.continues.has_value()) lost.run = *definition.continues;
  for (const v1::GetModelReply& reply : replies) {
    if (!reply.has_begun()) continue;
    lost.run = {reply.run(), absl::nullopt};
    lost.has_values = true;
    if (reply.has_cut()) lost.run.cut = reply.cut();
    break;
  }
  if (lost.run.run == 0) return absl::nullopt;
  for (size_t i = 0; i < replies.size(); ++i) {
    if (replies[i].run() == lost.run.run) continue;
    if (replies[i].has_begun()) return absl::nullopt;
    lost.missing.push_back(NameOf(definition, i));
  }
  if (lost.missing.empty()) return absl::nullopt;
  return lost;
}

// Makes the error for a run that cannot be restored at all servers.
absl::Status CannotGoOn(const LostRun& lost, absl::string_view why) {
  return absl::DataLossError(
      absl::StrCat("run ", absl::Hex(lost.run.run),
                   " is lost: ", absl::StrJoin(lost.missing, ", "),
                   " was restarted and has lost it, and the servers cannot "
                   "continue from a checkpoint by themselves: ",
                   why));
}

// Checks that the servers still have the training of the caller.
absl::Status CheckContinues(const Definition& definition,
                            const v1::GetModelReply& reply) {
  const auto& before = definition.continues;
  if (!before.has_value() || reply.run() == before->run ||
      Descends(reply, *before)) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat(
      "define: the servers have begun run ", absl::Hex(reply.run()), " with ",
      CutText(reply), ", which does not continue run ", absl::Hex(before->run),
      " of this process: restart this process to join them"));
}

absl::Status CheckSameModels(const Definition& definition,
                             const Replies& replies) {
  for (size_t i = 0; i < replies.size(); ++i) {
    if (replies[i].run() == 0) continue;
    absl::StatusOr<Model> theirs = FromMessage(replies[i].model());
    if (!theirs.ok()) return theirs.status();
    const std::string difference = Difference(*theirs, definition.model);
    if (difference.empty()) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "define: ", NameOf(definition, i), " has another model: ", difference,
        "; restart the servers to train this one"));
  }
  return absl::OkStatus();
}

// Returns true if all servers have the same run, and began it with the same
// cut.
bool AreOfOneRun(const Replies& replies) {
  const v1::GetModelReply& first = replies.front();
  return std::all_of(replies.begin(), replies.end(), [&](const auto& reply) {
    return reply.run() != 0 && reply.run() == first.run() &&
           SameCut(reply, first);
  });
}

// Requests the models of all servers. If their runs differ, asks server 0 again
// at the end. Reason: a server may lose its values after all servers have
// counted a push; the last answer then shows that server 0 has begun.
absl::StatusOr<Replies> AskAll(const Definition& definition,
                               const Router* router, absl::Time limit) {
  auto replies =
      GetModels(definition.servers, router, /*wait=*/false, Until(limit));
  if (!replies.ok() || AreOfOneRun(*replies)) return replies;
  const auto last =
      GetModels({definition.servers[0]}, router, /*wait=*/false, Until(limit));
  if (!last.ok()) return last.status();
  replies->front() = last->front();
  return replies;
}

// Returns true if nothing is left to define. Also returns true if all servers
// have trained values of different runs, because these belong to different
// trainings.
bool AreDefined(const Replies& replies) {
  return AreOfOneRun(replies) ||
         std::all_of(replies.begin(), replies.end(),
                     [](const auto& reply) { return reply.has_begun(); });
}

// Removes a repeated "define: " from an error of a server.
absl::Status Explained(const absl::Status& status) {
  return absl::Status(
      status.code(),
      absl::StrCat("define: ", absl::StrReplaceAll(status.message(),
                                                   {{": define: ", ": "}})));
}

// Proposes a new run, even if other servers have a run, because server 0 may
// have lost pushes of that run. With `replaces`, server 0 verifies the
// checkpoint.
absl::StatusOr<v1::ChooseCutReply> ChooseCut(const Definition& definition,
                                             uint64_t replaces,
                                             absl::Time limit) {
  v1::ChooseCutRequest request;
  request.set_run(RandomId());
  request.set_replaces(replaces);
  auto bytes = Fanout({definition.servers[0]}, {NameOf(definition, 0)})
                   .Call("ChooseCut", request, Until(limit));
  if (!bytes.ok()) return Explained(bytes.status());
  v1::ChooseCutReply choice;
  absl::Status status = tensor::ToProto(bytes->front(), &choice);
  if (!status.ok()) return status;
  return choice;
}

// Requests from server 0 the checkpoint from which all servers continue `lost`.
// Returns DATA_LOSS if server 0 refuses, has no checkpoint, or has only a
// checkpoint that does not continue the run. If no server still has values of
// `lost`, also accepts a checkpoint of a later run of the same training.
absl::StatusOr<v1::ChooseCutReply> ChooseCutFor(const Definition& definition,
                                                const LostRun& lost,
                                                absl::Time limit) {
  auto choice = ChooseCut(definition, lost.run.run, limit);
  if (absl::IsFailedPrecondition(choice.status())) {
    return CannotGoOn(lost, choice.status().message());
  }
  // Refuses a checkpoint of a later run if a server still has values. The
  // server would drop its values, and the later run may lack them.
  if (!choice.ok() || Continues(*choice, lost.run) ||
      (!lost.has_values && Descends(*choice, lost.run))) {
    return choice;
  }
  if (!choice->has_cut()) {
    return CannotGoOn(
        lost, absl::StrCat(NameOf(definition, 0),
                           " found no checkpoint (is the folder of "
                           "--checkpoints the same, and is --restore given?). "
                           "If there is none, restart all servers and "
                           "all workers, and train from the beginning"));
  }
  return CannotGoOn(
      lost,
      absl::StrCat(NameOf(definition, 0), " begins with ", CutText(*choice),
                   " of run ", absl::Hex(choice->cut().run()),
                   ", which is of another training: restart all servers "
                   "with the folder of this one"));
}

absl::Status CheckDefined(const Definition& definition, size_t server,
                          const v1::ChooseCutReply& choice,
                          const v1::DefineReply& reply) {
  if (reply.run() == choice.run() && SameCut(reply, choice)) {
    return absl::OkStatus();
  }
  return absl::AbortedError(absl::StrCat(
      "define: ", NameOf(definition, server), " has run ",
      absl::Hex(reply.run()), " with ", CutText(reply), ", expected run ",
      absl::Hex(choice.run()), " with ", CutText(choice),
      ": define again, or restart all servers if "
      "that does not help"));
}

// Defines the training at all servers, which restore concurrently. Returns true
// if a server had no model before.
absl::StatusOr<bool> DefineAll(const Definition& definition,
                               const Replies& before,
                               const v1::ChooseCutReply& choice, bool is_lost,
                               absl::Time limit) {
  std::vector<grpc::ByteBuffer> requests;
  std::vector<std::string> names;
  v1::DefineRequest request;
  *request.mutable_model() = ToMessage(definition.model);
  request.mutable_servers()->Assign(definition.addresses.begin(),
                                    definition.addresses.end());
  request.set_run(choice.run());
  if (choice.has_cut()) *request.mutable_cut() = choice.cut();
  request.set_abandons(is_lost);
  for (size_t i = 0; i < before.size(); ++i) {
    const bool may_replace = is_lost || !before[i].has_begun();
    request.set_server(static_cast<uint32_t>(i));
    request.set_instance(before[i].instance());
    request.set_replaces(may_replace ? before[i].run() : 0);
    requests.push_back(tensor::FromProto(request));
    names.push_back(NameOf(definition, i));
  }
  auto bytes =
      Fanout(definition.servers, names).Call("Define", requests, Until(limit));
  if (!bytes.ok()) return Explained(bytes.status());
  bool is_taken = false;
  for (size_t i = 0; i < bytes->size(); ++i) {
    v1::DefineReply reply;
    absl::Status status = tensor::ToProto((*bytes)[i], &reply);
    if (status.ok()) status = CheckDefined(definition, i, choice, reply);
    if (!status.ok()) return status;
    is_taken |= reply.taken();
  }
  return is_taken;
}

// Defines a training of which no push was counted. Server 0 first chooses a
// checkpoint without reading it, and all servers read it concurrently. If one
// of them finds damage, server 0 chooses again, verifies its choice, and all
// servers restore that checkpoint.
absl::StatusOr<bool> DefineUnbegun(const Definition& definition,
                                   const Replies& before, absl::Time limit) {
  const auto choice = ChooseCut(definition, /*replaces=*/0, limit);
  if (!choice.ok()) return choice.status();
  auto is_taken =
      DefineAll(definition, before, *choice, /*is_lost=*/false, limit);
  if (!absl::IsDataLoss(is_taken.status()) || !choice->has_cut()) {
    return is_taken;
  }
  const auto verified = ChooseCut(definition, choice->run(), limit);
  if (!verified.ok()) return verified.status();
  if (SameCut(*verified, *choice)) return is_taken;
  const auto now = GetModels(definition.servers, /*router=*/nullptr,
                             /*wait=*/false, Until(limit));
  if (!now.ok()) return now.status();
  return DefineAll(definition, *now, *verified, /*is_lost=*/false, limit);
}

// Restores all servers, because some have lost their part of the run, from the
// newest checkpoint. Verifies the checkpoint first, because the other servers
// drop their values.
absl::StatusOr<bool> DefineAgain(const Definition& definition,
                                 const Replies& before, const LostRun& lost,
                                 absl::Time limit) {
  const auto choice = ChooseCutFor(definition, lost, limit);
  if (!choice.ok()) return choice.status();
  return DefineAll(definition, before, *choice, /*is_lost=*/true, limit);
}

// Returns the servers' models, and the router to the servers. Requests a new
// view if the present view leads to no primary, because that view may be of a
// training that is over.
absl::StatusOr<Replies> FindModels(const Definition& definition,
                                   absl::Time limit,
                                   std::shared_ptr<Router>* router) {
  while (true) {
    auto found =
        ReachServers(definition.servers, Until(limit), definition.connect);
    if (!found.ok()) return found.status();
    *router = *std::move(found);
    const absl::Time soon =
        *router == nullptr
            ? limit
            : std::min(limit, base::SteadyNow() + kLookAgainEvery);
    auto replies = AskAll(definition, router->get(), soon);
    const bool may_pass = absl::IsUnavailable(replies.status()) ||
                          absl::IsDeadlineExceeded(replies.status());
    if (!may_pass || soon >= limit) return replies;
  }
}

}  // namespace

absl::StatusOr<Defined> Define(const Definition& definition) {
  const absl::Time limit = base::SteadyNow() + definition.timeout;
  absl::Status status = Check(definition);
  if (!status.ok()) return status;
  std::shared_ptr<Router> router;
  auto replies = FindModels(definition, limit, &router);
  if (!replies.ok()) return replies.status();
  status = CheckSameModels(definition, *replies);
  if (!status.ok()) return status;
  Defined defined;
  defined.is_adopted = true;
  const auto lost = FindLost(definition, *replies);
  if (lost.has_value() ? !AreOfOneRun(*replies) : !AreDefined(*replies)) {
    const auto is_taken = lost.has_value()
                              ? DefineAgain(definition, *replies, *lost, limit)
                              : DefineUnbegun(definition, *replies, limit);
    if (!is_taken.ok()) return is_taken.status();
    defined.is_adopted = !*is_taken;
    replies = GetModels(definition.servers, router.get(), /*wait=*/false,
                        Until(limit));
    if (!replies.ok()) return replies.status();
  }
  status = CheckContinues(definition, replies->front());
  if (!status.ok()) return status;
  defined.restored_step = replies->front().cut().step();
  auto connection = TrainingConnection::FromReplies(
      definition.servers, *replies, std::move(router));
  if (!connection.ok()) return connection.status();
  for (size_t i = 0; i < replies->size(); ++i) {
    if (!(*connection)->had_values(i)) defined.wants_values = true;
  }
  defined.connection = *std::move(connection);
  return defined;
}

}  // namespace penstock::ps
