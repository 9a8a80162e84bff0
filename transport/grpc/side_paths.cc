#include "transport/grpc/side_paths.h"

#include <map>
#include <mutex>
#include <utility>

#include "transport/fabric/shm/fabric.h"
#include "transport/fabric/shm/options.h"

namespace penstock {
namespace core {
namespace {

// One for each way that connections may differ in: each listens by itself.
fabric::Fabric* FindShm(const std::string& directory, bool is_private) {
  struct Fabrics {
    std::mutex mu;
    std::map<std::pair<std::string, bool>, fabric::Fabric*> all;
  };
  // Leaked: their threads outlive main().
  static Fabrics* const fabrics = new Fabrics;
  std::lock_guard<std::mutex> lock(fabrics->mu);
  fabric::Fabric*& found = fabrics->all[{directory, is_private}];
  if (found == nullptr) {
    fabric::shm::Options options;
    options.directory = directory;
    // Other users see what is shared with one of them.
    options.other_users = !is_private;
    found = new fabric::shm::ShmFabric(options);
  }
  return found;
}

// Null for a name that this release does not know.
fabric::Fabric* FindFabric(const std::string& name, const Settings& settings,
                           bool is_private) {
  return name == "shm" ? FindShm(settings.shm_directory, is_private) : nullptr;
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

std::vector<wire::FabricOffer> SidePaths::Offers() const {
  std::vector<wire::FabricOffer> offers;
  for (Fabric wanted : settings_.fabrics) {
    if (wanted == Fabric::kTcp) break;  // good enough: nothing behind it
    wire::FabricOffer offer;
    offer.fabric = FabricName(wanted);
    absl::StatusOr<std::string> data =
        wanted == Fabric::kShm && settings_.shm_sharing == ShmSharing::kOff
            ? absl::FailedPreconditionError("shm_sharing is off")
            : FindFabric(offer.fabric, settings_, is_private_)->Offer();
    offer.usable = data.ok();
    offer.data = data.ok() ? *data : std::string(data.status().message());
    offers.push_back(std::move(offer));
  }
  return offers;
}

void SidePaths::Listen(const std::vector<wire::FabricOffer>& offers,
                       const std::string& token, const Done& done) {
  for (const wire::FabricOffer& offer : offers) {
    if (!offer.usable) continue;
    pending_.push_back(FindFabric(offer.fabric, settings_, is_private_)
                           ->Listen(token, Adapt(offer.fabric, done)));
  }
}

void SidePaths::Connect(const std::string& fabric, const std::string& offer,
                        const std::string& token, const Done& done) {
  pending_.push_back(FindFabric(fabric, settings_, is_private_)
                         ->Connect(offer, token, Adapt(fabric, done)));
}

}  // namespace core
}  // namespace penstock
