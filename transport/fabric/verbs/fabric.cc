#include "transport/fabric/verbs/fabric.h"

#include <utility>

#include "absl/memory/memory.h"
#include "transport/base/descriptors.h"
#include "transport/fabric/timed_setup.h"
#include "transport/fabric/verbs/cm_channel.h"
#include "transport/fabric/verbs/connector.h"
#include "transport/fabric/verbs/device.h"
#include "transport/fabric/verbs/formats/address.h"
#include "transport/fabric/verbs/formats/private_data.h"
#include "transport/fabric/verbs/library.h"
#include "transport/fabric/verbs/listener.h"
#include "transport/fabric/verbs/locked_memory.h"
#include "transport/fabric/verbs/site.h"
#include "transport/progress/event_loop.h"
#include "transport/progress/fork_count.h"

namespace penstock {
namespace fabric {
namespace verbs {

struct VerbsFabric::Parts {
  Site site;
  std::shared_ptr<Listener> listener;
};

VerbsFabric::VerbsFabric(const Options& options, Api* api)
    : options_(options), given_api_(api) {}

VerbsFabric::~VerbsFabric() = default;

absl::StatusOr<VerbsFabric::Parts> VerbsFabric::GetParts() {
  base::MutexLock lock(&mu_);
  if (parts_ != nullptr && fork_count_ != progress::ForkCount()) {
    return absl::FailedPreconditionError(
        "RDMA does not work in the child of a fork");
  }
  if (parts_ == nullptr) {
    absl::StatusOr<Site> site = MakeSite();
    if (!site.ok()) return site.status();
    parts_ = absl::make_unique<Parts>();
    parts_->site = *std::move(site);
    fork_count_ = progress::ForkCount();
  }
  if (parts_->listener == nullptr || parts_->listener->is_stale()) {
    absl::StatusOr<std::shared_ptr<Listener>> listener =
        Listener::Create(parts_->site, parts_->listener.get());
    if (!listener.ok()) return listener.status();
    parts_->listener = *std::move(listener);
  }
  return *parts_;
}

absl::StatusOr<Site> VerbsFabric::MakeSite() const {
  Site site;
  site.options = options_;
  site.api = given_api_;
  // Sets no limit for simulated devices, which lock no memory.
  site.locked_limit = options_.locked_bytes.value_or(kUnlimited);
  if (site.api == nullptr) {
    absl::StatusOr<Api*> library = OpenLibrary();
    if (!library.ok()) return library.status();
    site.api = *library;
    if (!options_.locked_bytes.has_value()) {
      site.locked_limit = LockedMemoryLimit();
    }
  }
  absl::Status enough = CheckLockedMemory(site.locked_limit);
  if (!enough.ok()) return enough;
  absl::StatusOr<progress::EventLoop*> loop = progress::EventLoop::Get();
  if (!loop.ok()) return loop.status();
  site.loop = *loop;
  absl::StatusOr<std::shared_ptr<CmChannel>> channel =
      CmChannel::Create(site.api, site.loop);
  if (!channel.ok()) return channel.status();
  site.channel = *std::move(channel);
  site.supervisor = Supervisor::For(site.api, site.loop);
  site.devices = Devices::For(site.api);
  return site;
}

absl::StatusOr<std::string> VerbsFabric::Offer() {
  absl::StatusOr<Parts> parts = GetParts();
  if (!parts.ok()) return parts.status();
  return MakeOffer(parts->listener->addresses());
}

std::unique_ptr<PendingConnect> VerbsFabric::Listen(absl::string_view token,
                                                    ConnectCallback done) {
  auto attempt = std::make_shared<Attempt>(std::string(token), std::move(done));
  absl::Status room = base::Descriptors::Now().CheckForPath();
  if (!room.ok()) return FailLater(attempt, room);
  absl::StatusOr<Parts> parts = GetParts();
  if (!parts.ok()) return FailLater(attempt, parts.status());
  return parts->listener->Expect(std::move(attempt));
}

// Returns the routes to a peer. Uses the address of the device as the source if
// the user has named a device. Otherwise the system's routing table chooses the
// source.
absl::StatusOr<std::vector<Route>> VerbsFabric::RoutesTo(
    absl::string_view offer, const Listener& listener) const {
  absl::StatusOr<std::vector<Address>> destinations = ParseOffer(offer);
  if (!destinations.ok()) return destinations.status();
  std::vector<Route> routes;
  for (const Address& destination : *destinations) {
    if (!IsRestricted(options_)) {
      routes.push_back(Route{absl::nullopt, destination});
      continue;
    }
    for (Address source : listener.addresses()) {
      if (source.is_v6() != destination.is_v6()) continue;
      source.set_port(0);
      routes.push_back(Route{source, destination});
    }
  }
  return routes;
}

std::unique_ptr<PendingConnect> VerbsFabric::Connect(absl::string_view offer,
                                                     absl::string_view token,
                                                     ConnectCallback done) {
  auto attempt = std::make_shared<Attempt>(std::string(token), std::move(done));
  absl::Status room = base::Descriptors::Now().CheckForPath();
  if (!room.ok()) return FailLater(attempt, room);
  absl::StatusOr<Parts> parts = GetParts();
  if (!parts.ok()) return FailLater(attempt, parts.status());
  absl::StatusOr<std::vector<Route>> routes = RoutesTo(offer, *parts->listener);
  if (!routes.ok()) return FailLater(attempt, routes.status());
  absl::Status usable = CheckToken(token);
  if (!usable.ok()) return FailLater(attempt, usable);
  return TimedSetup::Launch(
      Connector::Create(parts->site, *std::move(routes), attempt));
}

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
