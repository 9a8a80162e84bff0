#include "transport/fabric/verbs/connector.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/fabric/verbs/device.h"
#include "transport/fabric/verbs/endpoint.h"
#include "transport/fabric/verbs/formats/private_data.h"
#include "transport/fabric/verbs/status.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

// Limits each of the two steps that query the network, in milliseconds. The
// whole attempt has its own timeout.
constexpr int kResolveMillis = 1000;

}  // namespace

std::shared_ptr<Connector> Connector::Create(const Site& site,
                                             std::vector<Route> routes,
                                             std::shared_ptr<Attempt> attempt) {
  return std::shared_ptr<Connector>(
      new Connector(site, std::move(routes), std::move(attempt)));
}

Connector::Connector(const Site& site, std::vector<Route> routes,
                     std::shared_ptr<Attempt> attempt)
    : TimedSetup(
          site.loop, std::move(attempt), site.options.setup_timeout,
          "the peer's RDMA address did not answer in time (is UDP port 4791 "
          "open?)"),
      site_(site),
      routes_(std::move(routes)) {
  std::reverse(routes_.begin(), routes_.end());
}

void Connector::BeginOnLoop() {
  TryNextOnLoop(absl::UnavailableError("no RDMA address to try"));
}

void Connector::TryNextOnLoop(absl::Status error) {
  while (!routes_.empty()) {
    DropId();
    Route route = routes_.back();
    routes_.pop_back();
    error = ResolveAddress(route);
    if (error.ok()) return;
  }
  FinishOnLoop(std::move(error));
}

void Connector::DropId() {
  connection_ = nullptr;
  if (!id_) return;
  site_.channel->Forget(id_.get());
  id_.Reset();
}

absl::Status Connector::ResolveAddress(Route route) {
  absl::StatusOr<CmId> id = site_.channel->NewId();
  if (!id.ok()) return id.status();
  id_ = *std::move(id);
  site_.channel->SetHandler(
      id_.get(), std::static_pointer_cast<Connector>(shared_from_this()));
  absl::Status set = SetIdOptions(site_.api, id_.get(), site_.options);
  if (!set.ok()) return set;
  state_ = State::kAddress;
  sockaddr* const source =
      route.source.has_value() ? route.source->get() : nullptr;
  if (site_.api->ResolveAddr(id_.get(), source, route.destination.get(),
                             kResolveMillis) == 0) {
    return absl::OkStatus();
  }
  return CallFailed(site_.api, errno,
                    absl::StrCat("find an RDMA device that leads to ",
                                 route.destination.Text()),
                    nullptr);
}

absl::Status Connector::ResolveRoute() {
  state_ = State::kRoute;
  if (site_.api->ResolveRoute(id_.get(), kResolveMillis) == 0) {
    return absl::OkStatus();
  }
  return CallFailed(site_.api, errno, "find an RDMA route", id_->verbs);
}

absl::Status Connector::Connect() {
  state_ = State::kConnecting;
  absl::StatusOr<std::shared_ptr<CmConnection>> connection =
      CmConnection::Create(site_, std::move(id_));
  if (!connection.ok()) return connection.status();
  connection_ = *std::move(connection);
  return connection_->Connect(MakeRequest(connection_->terms(),
                                          attempt().token(),
                                          connection_->queue_pair()->qp_num));
}

absl::StatusOr<std::unique_ptr<Endpoint>> Connector::Establish(
    const CmEvent& event) {
  absl::StatusOr<Terms> peer = ParseAnswer(event.private_data);
  if (!peer.ok()) return peer.status();
  if (!AnswerIsProven(event.private_data, attempt().token(),
                      connection_->queue_pair()->qp_num, event.qp_number)) {
    return absl::PermissionDeniedError(
        "the process at the peer's RDMA address does not know the token");
  }
  CmConnection::Begin(connection_, *peer);
  return VerbsEndpoint::Create(std::move(connection_));
}

void Connector::OnCmEvent(CmEvent event) {
  if (has_ended()) return;
  if (state_ == State::kConnecting && event.type == RDMA_CM_EVENT_ESTABLISHED) {
    return FinishOnLoop(Establish(event));
  }
  absl::Status advanced = Advance(event);
  if (!advanced.ok()) TryNextOnLoop(std::move(advanced));
}

absl::Status Connector::Advance(const CmEvent& event) {
  if (state_ == State::kAddress && event.type == RDMA_CM_EVENT_ADDR_RESOLVED) {
    return ResolveRoute();
  }
  if (state_ == State::kRoute && event.type == RDMA_CM_EVENT_ROUTE_RESOLVED) {
    return Connect();
  }
  return CmStatus(event.type, event.status);
}

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
