#include "ps/client/define.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
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

// What may be defined at those that have nothing: the run of the others, or 0
// if there is none.
absl::StatusOr<uint64_t> RunToGoOnWith(const Definition& definition,
                                       const Replies& replies) {
  uint64_t run = 0;
  bool has_values = false;
  bool is_missing = false;
  std::string missing;
  for (size_t i = 0; i < replies.size(); ++i) {
    if (replies[i].run() == 0) {
      absl::StrAppend(&missing, is_missing ? ", " : "", "server ", i, " (",
                      definition.addresses[i], ")");
      is_missing = true;
      continue;
    }
    run = replies[i].run();
    has_values = has_values || replies[i].has_values();
  }
  if (!is_missing || !has_values) return run;
  return absl::DataLossError(absl::StrCat(
      "define: of run ", absl::Hex(run), ", ", missing,
      " has nothing, as it was started anew: start all servers anew, from a "
      "checkpoint if there is one"));
}

absl::Status CheckSameModel(const Definition& definition,
                            const v1::GetModelReply& reply, size_t server) {
  absl::StatusOr<Model> theirs = FromMessage(reply.model());
  if (!theirs.ok()) return theirs.status();
  const std::string difference = Difference(*theirs, definition.model);
  if (difference.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "define: server ", server, " (", definition.addresses[server],
      ") has another model: ", difference,
      "; start the servers anew for a new one"));
}

absl::StatusOr<v1::DefineReply> DefineAt(const Definition& definition,
                                         size_t server, uint64_t run,
                                         uint64_t restore_step) {
  v1::DefineRequest request;
  *request.mutable_model() = ToMessage(definition.model);
  request.mutable_servers()->Assign(definition.addresses.begin(),
                                    definition.addresses.end());
  request.set_server(static_cast<uint32_t>(server));
  request.set_run(run);
  request.set_restore_step(restore_step);
  const std::string name =
      absl::StrCat("server ", server, " (", definition.addresses[server], ")");
  auto replies = Fanout({definition.servers[server]}, {name})
                     .Call("Define", request, definition.timeout);
  v1::DefineReply reply;
  absl::Status status = replies.status();
  if (status.ok()) status = tensor::ToProto(replies->front(), &reply);
  if (status.ok()) return reply;
  // Servers begin with the same word.
  return absl::Status(
      status.code(),
      absl::StrCat("define: ", absl::StrReplaceAll(status.message(),
                                                   {{": define: ", ": "}})));
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
  absl::StatusOr<uint64_t> run = RunToGoOnWith(definition, *replies);
  if (!run.ok()) return run.status();
  Defined defined;
  defined.is_adopted = true;
  if (*run == 0) *run = RandomId();
  for (size_t i = 0; i < replies->size(); ++i) {
    if ((*replies)[i].run() != 0) {
      status = CheckSameModel(definition, (*replies)[i], i);
      if (!status.ok()) return status;
      continue;
    }
    auto reply = DefineAt(definition, i, *run, defined.restored_step);
    if (!reply.ok()) return reply.status();
    if (reply->taken()) defined.is_adopted = false;
    if (i == 0) *run = reply->run();  // of another chief that was faster
    defined.restored_step =
        std::max(defined.restored_step, reply->restored_step());
  }
  replies = GetModels(definition.servers, /*wait=*/false, definition.timeout);
  if (!replies.ok()) return replies.status();
  auto connection = Connection::FromReplies(definition.servers, *replies);
  if (!connection.ok()) return connection.status();
  for (size_t i = 0; i < replies->size(); ++i) {
    if (!(*connection)->had_values(i)) defined.wants_values = true;
  }
  defined.connection = *std::move(connection);
  return defined;
}

}  // namespace penstock::ps
