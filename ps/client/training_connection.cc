#include "ps/client/training_connection.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ps/client/cut.h"
#include "ps/client/fanout.h"
#include "ps/client/patient_fanout.h"
#include "ps/client/reach.h"
#include "ps/model/wire.h"
#include "ps/placement/wire.h"
#include "tensor_service/calls.h"
#include "transport/base/printable.h"
#include "transport/base/steady_time.h"

namespace penstock::ps {
namespace {

std::string Named(size_t server, absl::string_view address) {
  return absl::StrCat("server ", server, " (",
                      base::Printable(address, PlacementMap::kMaxAddressBytes),
                      ")");
}

// Returns "server N (address)", or "server N" if the placement in the reply has
// no such address. Used for errors that are found before a placement is
// accepted.
std::string NameIn(const v1::GetModelReply& reply, size_t server) {
  const auto& servers = reply.placement().servers();
  if (server >= static_cast<size_t>(servers.size())) {
    return absl::StrCat("server ", server);
  }
  return Named(server, servers.Get(static_cast<int>(server)));
}

absl::Status CheckAllHaveIt(const std::vector<v1::GetModelReply>& replies,
                            const v1::GetModelReply& first) {
  if (first.run() == 0) {
    return absl::FailedPreconditionError(
        "no server has a model: worker 0 has to define one");
  }
  for (size_t server = 0; server < replies.size(); ++server) {
    if (replies[server].run() != 0) continue;
    return absl::DataLossError(absl::StrCat(
        NameIn(first, server), " was restarted and has lost run ",
        absl::Hex(first.run()),
        ": restart worker 0, which restores a checkpoint at all servers if "
        "they have --restore, or restart all servers"));
  }
  return absl::OkStatus();
}

absl::Status CheckSame(const std::vector<v1::GetModelReply>& replies) {
  const v1::GetModelReply& first = replies[0];
  for (size_t i = 0; i < replies.size(); ++i) {
    const v1::GetModelReply& reply = replies[i];
    if (reply.run() != first.run()) {
      return absl::AbortedError(absl::StrCat(
          NameIn(first, i), " is of run ", absl::Hex(reply.run()), ", ",
          NameIn(first, 0), " of run ", absl::Hex(first.run()),
          ": they are of different trainings; check the addresses, or "
          "restart all servers"));
    }
    if (!SameCut(reply, first)) {
      return absl::FailedPreconditionError(absl::StrCat(
          NameIn(first, i), " began with ", CutText(reply), ", ",
          NameIn(first, 0), " with ", CutText(first),
          ": restart all servers with the same --restore and folder"));
    }
    if (reply.server() != i ||
        static_cast<size_t>(reply.placement().servers().size()) !=
            replies.size()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "channel ", i, " of ", replies.size(), " leads to server ",
          reply.server(), " of ", reply.placement().servers().size(),
          ": give one channel for each server, in the order in which they were "
          "defined"));
    }
    if (reply.placement().SerializeAsString() !=
        first.placement().SerializeAsString()) {
      return absl::AbortedError(
          absl::StrCat(NameIn(first, i), " has a placement of epoch ",
                       reply.placement().epoch(), ", ", NameIn(first, 0),
                       " another one of epoch ", first.placement().epoch(),
                       ": try again when it has changed at all"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckModels(const std::vector<v1::GetModelReply>& replies,
                         const Model& model) {
  for (size_t i = 1; i < replies.size(); ++i) {
    absl::StatusOr<Model> other = FromMessage(replies[i].model());
    if (!other.ok()) return other.status();
    const std::string difference = Difference(*other, model);
    if (difference.empty()) continue;
    return absl::InternalError(absl::StrCat(NameIn(replies[0], i),
                                            " and server 0 are of one run, and "
                                            "have different models: ",
                                            difference));
  }
  return absl::OkStatus();
}

absl::Status Impossible(const absl::Status& why) {
  return absl::InternalError(
      absl::StrCat("the servers' replies are inconsistent: ", why.message()));
}

int64_t LeastStaleness(const Model& model) {
  int64_t least = ConsistencyPolicy::kUnlimited;
  for (const TableSpec& table : model.tables) {
    least = std::min(least, table.staleness);
  }
  return least;
}

}  // namespace

TrainingConnection::TrainingConnection(Channels channels, RunAndCut begun,
                                       Model model, PlacementMap placement,
                                       Layout layout,
                                       std::vector<bool> had_values,
                                       std::shared_ptr<Router> router)
    : channels_(std::move(channels)),
      begun_(std::move(begun)),
      model_(std::move(model)),
      placement_(std::move(placement)),
      layout_(std::move(layout)),
      least_staleness_(LeastStaleness(model_)),
      had_values_(std::move(had_values)),
      router_(std::move(router)) {}

absl::StatusOr<std::shared_ptr<const TrainingConnection>>
TrainingConnection::Open(const Options& options) {
  const absl::Time limit = base::SteadyNow() + options.timeout;
  auto router = ReachServers(options.servers, options.timeout, options.connect);
  if (!router.ok()) return router.status();
  auto replies = GetModels(options.servers, router->get(),
                           options.wait_for_values, limit - base::SteadyNow());
  if (!replies.ok()) return replies.status();
  return FromReplies(options.servers, *replies, *std::move(router));
}

absl::StatusOr<std::shared_ptr<const TrainingConnection>>
TrainingConnection::FromReplies(Channels servers,
                                const std::vector<v1::GetModelReply>& replies,
                                std::shared_ptr<Router> router) {
  if (replies.empty()) {
    return absl::InvalidArgumentError("connect: there are no servers");
  }
  const v1::GetModelReply* first = &replies[0];
  for (const v1::GetModelReply& reply : replies) {
    if (first->run() == 0) first = &reply;
  }
  absl::Status status = CheckAllHaveIt(replies, *first);
  if (status.ok()) status = CheckSame(replies);
  if (!status.ok()) return status;
  absl::StatusOr<Model> model = FromMessage(first->model());
  if (!model.ok()) return Impossible(model.status());
  status = CheckModels(replies, *model);
  if (!status.ok()) return status;
  absl::StatusOr<PlacementMap> placement = FromMessage(first->placement());
  if (!placement.ok()) return Impossible(placement.status());
  std::vector<Layout::ServerParts> parts;
  std::vector<bool> had_values;
  parts.reserve(replies.size());
  had_values.reserve(replies.size());
  for (const v1::GetModelReply& reply : replies) {
    parts.push_back(reply.parts());
    had_values.push_back(reply.has_values());
  }
  absl::StatusOr<Layout> layout = Layout::Create(*model, parts);
  if (!layout.ok()) return Impossible(layout.status());
  for (const TableSpec& table : model->tables) {
    if (placement->Find(table.name) != nullptr) continue;
    return absl::InternalError(
        absl::StrCat("the servers' replies are inconsistent: table ",
                     table.name, " is not placed"));
  }
  RunAndCut begun;
  begun.run = first->run();
  if (first->has_cut()) begun.cut = first->cut();
  if (router != nullptr) router->Pin(begun.run);
  return std::shared_ptr<const TrainingConnection>(new TrainingConnection(
      std::move(servers), std::move(begun), *std::move(model),
      *std::move(placement), *std::move(layout), std::move(had_values),
      std::move(router)));
}

v1::View TrainingConnection::view() const {
  v1::View view;
  view.set_run(run());
  view.set_epoch(placement_.epoch());
  return view;
}

std::string TrainingConnection::NameOf(size_t server) const {
  return Named(server, placement_.servers()[server]);
}

std::vector<std::string> TrainingConnection::names() const {
  std::vector<std::string> names;
  names.reserve(servers());
  for (size_t i = 0; i < servers(); ++i) names.push_back(NameOf(i));
  return names;
}

absl::Status TrainingConnection::Explain(absl::string_view what, size_t server,
                                         const absl::Status& error) const {
  std::string remedy;
  // Add the cause, which gRPC's own message does not name.
  if (absl::IsDeadlineExceeded(error) &&
      absl::StrContains(error.message(), "Deadline Exceeded")) {
    remedy =
        ": it has not answered in time; is it running and reachable, or does "
        "it wait for a worker that is not?";
  }
  return absl::Status(
      error.code(),
      absl::StrCat(what, ": ", NameOf(server), ": ", error.message(), remedy));
}

absl::StatusOr<std::shared_ptr<Router>> ReachServers(
    const TrainingConnection::Channels& servers, absl::Duration timeout,
    const Router::Connect& connect) {
  v1::GetViewReply view;
  absl::Status reached = AwaitServers(servers, timeout, &view);
  if (!reached.ok()) return reached;
  if (view.replicas() == 0) return nullptr;
  return std::make_shared<Router>(servers, view, connect);
}

absl::StatusOr<std::vector<v1::GetModelReply>> GetModels(
    const TrainingConnection::Channels& servers, const Router* router,
    bool wait, absl::Duration timeout) {
  v1::GetModelRequest request;
  request.set_wait(wait);
  auto replies = router == nullptr
                     ? Fanout(servers).Call("GetModel", request, timeout)
                     : CallPatiently(RoutesOf(router, servers.size()), {},
                                     "GetModel", request, timeout);
  if (!replies.ok()) return replies.status();
  std::vector<v1::GetModelReply> models(replies->size());
  for (size_t i = 0; i < models.size(); ++i) {
    absl::Status status = tensor::ToProto((*replies)[i], &models[i]);
    if (!status.ok()) return status;
  }
  return models;
}

absl::StatusOr<v1::ServerReport> Describe(
    const std::shared_ptr<grpc::Channel>& server, absl::Duration timeout) {
  auto replies =
      Fanout({server}).Call("Describe", v1::DescribeRequest(), timeout);
  if (!replies.ok()) return replies.status();
  v1::ServerReport report;
  absl::Status status = tensor::ToProto(replies->front(), &report);
  if (!status.ok()) return status;
  return report;
}

}  // namespace penstock::ps
