#include "transport/paths/side_paths.h"

#include <map>
#include <tuple>
#include <utility>

#include "transport/base/mutex.h"
#include "transport/fabric/shm/fabric.h"
#include "transport/fabric/shm/huge_pages.h"
#include "transport/fabric/shm/options.h"
#include "transport/fabric/tcp/stripes/fabric.h"
#include "transport/fabric/verbs/fabric.h"
#include "transport/fabric/verbs/options.h"
#include "transport/settings/shm_arena.h"
#include "transport/settings/tcp_sockets.h"
#include "transport/settings/verbs_device.h"

namespace penstock {
namespace paths {
namespace {

// Returns the shm fabric for these settings, and creates the fabric on first
// use. Each combination of settings has its own fabric, because each listens
// separately.
fabric::Fabric* FindShm(const std::string& directory, bool is_private,
                        memory::DeviceAccess* devices) {
  struct Fabrics {
    base::Mutex mu;
    std::map<std::tuple<std::string, bool, memory::DeviceAccess*>,
             fabric::Fabric*>
        all ABSL_GUARDED_BY(mu);
  };
  // The fabrics of this process. Never destroyed, because their threads outlive
  // main().
  static Fabrics* const fabrics = new Fabrics;
  base::MutexLock lock(&fabrics->mu);
  fabric::Fabric*& found = fabrics->all[{directory, is_private, devices}];
  if (found == nullptr) {
    fabric::shm::Options options;
    options.directory = directory;
    // Refuses other users on a private connection. If memory is shared with one
    // process, all processes of that process's user can read it.
    options.other_users = !is_private;
    options.devices = devices;
    // Uses the default for a bad value, which was logged when the first channel
    // or server was created.
    options.huge_pages =
        ResolveShmHugePages().value_or(fabric::shm::HugePages::kTransparent);
    options.arena_bytes = ResolveShmArenaBytes().value_or(0);
    found = new fabric::shm::ShmFabric(options);
  }
  return found;
}

fabric::Fabric* FindVerbs(const Settings& settings) {
  struct Fabrics {
    base::Mutex mu;
    std::map<std::tuple<std::string, int, int, int>, fabric::Fabric*> all
        ABSL_GUARDED_BY(mu);
  };
  static Fabrics* const fabrics = new Fabrics;
  base::MutexLock lock(&fabrics->mu);
  fabric::Fabric*& found =
      fabrics->all[{settings.verbs_device, settings.verbs_gid_index,
                    settings.verbs_traffic_class, settings.verbs_cache_mib}];
  if (found == nullptr) {
    const VerbsDevice device =
        VerbsDevice::Parse(settings.verbs_device).value_or(VerbsDevice());
    fabric::verbs::Options options;
    options.device = device.name;
    options.port = device.port;
    options.gid_index = settings.verbs_gid_index;
    options.traffic_class = settings.verbs_traffic_class;
    options.cache_bytes = static_cast<uint64_t>(settings.verbs_cache_mib) << 20;
    found = new fabric::verbs::VerbsFabric(options);
  }
  return found;
}

// Returns OK if the settings and the connection's security allow the fabric.
// Otherwise returns an error with the reason.
absl::Status CheckAllowed(Fabric fabric, const Settings& settings,
                          bool is_private) {
  if (fabric == Fabric::kShm && settings.shm_sharing == ShmSharing::kOff) {
    return absl::FailedPreconditionError("shm_sharing is off");
  }
  if (fabric == Fabric::kVerbs && is_private &&
      settings.data_protection == DataProtection::kRequired) {
    return absl::FailedPreconditionError(
        "RDMA does not encrypt what this connection's security protects "
        "(PENSTOCK_DATA_PROTECTION=none would let it)");
  }
  if (fabric == Fabric::kTcp && is_private) {
    return absl::FailedPreconditionError(
        "a connection with TLS uses one socket, because each socket would need "
        "TLS of its own");
  }
  return absl::OkStatus();
}

fabric::ConnectCallback Adapt(const std::string& fabric,
                              const SidePaths::Done& done) {
  return
      [fabric, done](absl::StatusOr<std::unique_ptr<fabric::Endpoint>> path) {
        if (!path.ok()) return done(fabric, path.status());
        done(fabric, std::shared_ptr<fabric::Endpoint>(*std::move(path)));
      };
}

}  // namespace

SidePaths::SidePaths(const Settings& settings, bool is_private,
                     memory::DeviceAccess* devices, const std::string& peer)
    : settings_(settings),
      is_private_(is_private),
      devices_(settings.shm_sharing == ShmSharing::kSameUid ? devices
                                                            : nullptr) {
  // Uses the default for a bad value, which was logged when the first channel
  // or server was created.
  const int sockets = ResolveTcpSockets().value_or(1);
  if (sockets > 1 && settings.Allows(FabricName(Fabric::kTcp))) {
    stripes_ = std::make_unique<fabric::stripes::StripesFabric>(sockets, peer);
  }
}

SidePaths::SidePaths(SidePaths&&) noexcept = default;
SidePaths::~SidePaths() = default;

fabric::Fabric* SidePaths::Find(const std::string& name) const {
  if (name == "shm") {
    return FindShm(settings_.shm_directory, is_private_, devices_);
  }
  if (name == "verbs") return FindVerbs(settings_);
  if (name == "tcp") return stripes_.get();
  return nullptr;
}

std::vector<wire::FabricOffer> SidePaths::Offers() const {
  std::vector<wire::FabricOffer> offers;
  for (Fabric wanted : settings_.fabrics) {
    if (wanted == Fabric::kTcp)
      break;  // tcp always works: offer no later fabric
    offers.push_back(OfferOf(wanted));
  }
  if (stripes_ != nullptr) offers.push_back(OfferOf(Fabric::kTcp));
  return offers;
}

wire::FabricOffer SidePaths::OfferOf(Fabric wanted) const {
  wire::FabricOffer offer;
  offer.fabric = FabricName(wanted);
  const absl::Status allowed = CheckAllowed(wanted, settings_, is_private_);
  const absl::StatusOr<std::string> data =
      allowed.ok() ? Find(offer.fabric)->Offer() : allowed;
  offer.usable = data.ok();
  offer.data = data.ok() ? *data : std::string(data.status().message());
  return offer;
}

void SidePaths::Listen(const std::vector<wire::FabricOffer>& offers,
                       const std::string& token, const Done& done) {
  for (const wire::FabricOffer& offer : offers) {
    if (!offer.usable) continue;
    pending_.push_back(
        Find(offer.fabric)->Listen(token, Adapt(offer.fabric, done)));
  }
}

void SidePaths::Connect(const std::string& fabric, const std::string& offer,
                        const std::string& token, const Done& done) {
  pending_.push_back(Find(fabric)->Connect(offer, token, Adapt(fabric, done)));
}

}  // namespace paths
}  // namespace penstock
