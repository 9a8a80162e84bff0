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

namespace penstock::ps {
namespace {

using Replies = std::vector<v1::GetModelReply>;

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

// Returns DATA_LOSS if a server has no model while another one has trained
// values: the server without a model has lost its values.
absl::Status CheckNothingIsLost(const Definition& definition,
                                const Replies& replies) {
  const auto begun =
      std::find_if(replies.begin(), replies.end(),
                   [](const auto& reply) { return reply.has_begun(); });
  if (begun == replies.end()) return absl::OkStatus();
  std::vector<std::string> missing;
  for (size_t i = 0; i < replies.size(); ++i) {
    if (replies[i].run() == 0) missing.push_back(NameOf(definition, i));
  }
  if (missing.empty()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      "define: of run ", absl::Hex(begun->run()), ", ",
      absl::StrJoin(missing, ", "),
      " has nothing, as it was started anew: start all servers anew, from a "
      "checkpoint if there is one"));
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
        "; start the servers anew for a new one"));
  }
  return absl::OkStatus();
}

// Returns true if all servers have one run, of one cut. Trained servers count
// as defined, because nobody can define them again.
bool AreDefined(const Replies& replies) {
  const v1::GetModelReply& first = replies.front();
  return std::all_of(replies.begin(), replies.end(), [&](const auto& reply) {
    return reply.has_begun() ||
           (reply.run() != 0 && reply.run() == first.run() &&
            SameCut(reply, first));
  });
}

// Removes a repeated "define: " from an error of a server.
absl::Status Explained(const absl::Status& status) {
  return absl::Status(
      status.code(),
      absl::StrCat("define: ", absl::StrReplaceAll(status.message(),
                                                   {{": define: ", ": "}})));
}

absl::StatusOr<v1::ChooseCutReply> ChooseCut(const Definition& definition,
                                             const Replies& replies) {
  v1::ChooseCutRequest request;
  request.set_run(RandomId());
  for (const v1::GetModelReply& reply : replies) {
    if (reply.run() != 0) request.set_run(reply.run());
  }
  auto bytes = Fanout({definition.servers[0]}, {NameOf(definition, 0)})
                   .Call("ChooseCut", request, definition.timeout);
  if (!bytes.ok()) return Explained(bytes.status());
  v1::ChooseCutReply choice;
  absl::Status status = tensor::ToProto(bytes->front(), &choice);
  if (!status.ok()) return status;
  return choice;
}

absl::Status CheckDefined(const Definition& definition, size_t server,
                          const v1::ChooseCutReply& choice,
                          const v1::DefineReply& reply) {
  if (reply.run() == choice.run() && SameCut(reply, choice)) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat("define: ", NameOf(definition, server), " has run ",
                   absl::Hex(reply.run()), " with ", CutText(reply),
                   ", expected run ", absl::Hex(choice.run()), " with ",
                   CutText(choice), ": start all servers anew"));
}

// Defines the training at all servers, which restore concurrently. Returns true
// if a server had no model before.
absl::StatusOr<bool> DefineAll(const Definition& definition,
                               const Replies& before,
                               const v1::ChooseCutReply& choice) {
  std::vector<grpc::ByteBuffer> requests;
  std::vector<std::string> names;
  v1::DefineRequest request;
  *request.mutable_model() = ToMessage(definition.model);
  request.mutable_servers()->Assign(definition.addresses.begin(),
                                    definition.addresses.end());
  request.set_run(choice.run());
  if (choice.has_cut()) *request.mutable_cut() = choice.cut();
  for (size_t i = 0; i < before.size(); ++i) {
    request.set_server(static_cast<uint32_t>(i));
    request.set_replaces(before[i].has_begun() ? 0 : before[i].run());
    requests.push_back(tensor::FromProto(request));
    names.push_back(NameOf(definition, i));
  }
  auto bytes = Fanout(definition.servers, names)
                   .Call("Define", requests, definition.timeout);
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

}  // namespace

absl::StatusOr<Defined> Define(const Definition& definition) {
  absl::Status status = Check(definition);
  if (status.ok()) {
    status = AwaitServers(definition.servers, definition.timeout);
  }
  if (!status.ok()) return status;
  auto replies =
      GetModels(definition.servers, /*wait=*/false, definition.timeout);
  if (!replies.ok()) return replies.status();
  status = CheckNothingIsLost(definition, *replies);
  if (status.ok()) status = CheckSameModels(definition, *replies);
  if (!status.ok()) return status;
  Defined defined;
  defined.is_adopted = true;
  if (!AreDefined(*replies)) {
    const auto choice = ChooseCut(definition, *replies);
    if (!choice.ok()) return choice.status();
    const auto is_taken = DefineAll(definition, *replies, *choice);
    if (!is_taken.ok()) return is_taken.status();
    defined.is_adopted = !*is_taken;
    replies = GetModels(definition.servers, /*wait=*/false, definition.timeout);
    if (!replies.ok()) return replies.status();
  }
  defined.restored_step = replies->front().cut().step();
  auto connection =
      TrainingConnection::FromReplies(definition.servers, *replies);
  if (!connection.ok()) return connection.status();
  for (size_t i = 0; i < replies->size(); ++i) {
    if (!(*connection)->had_values(i)) defined.wants_values = true;
  }
  defined.connection = *std::move(connection);
  return defined;
}

}  // namespace penstock::ps
