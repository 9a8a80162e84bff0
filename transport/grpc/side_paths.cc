#include "transport/grpc/side_paths.h"

#include <utility>

#include "transport/fabric/shm/fabric.h"

namespace penstock {
namespace core {
namespace {

// Null for a name that this release does not know.
fabric::Fabric* FindFabric(const std::string& name) {
  // Leaked: their threads outlive main().
  static fabric::Fabric* const shm = new fabric::shm::ShmFabric();
  return name == shm->name() ? shm : nullptr;
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

std::vector<wire::FabricOffer> SidePaths::Offers(const Settings& settings) {
  std::vector<wire::FabricOffer> offers;
  for (Fabric wanted : settings.fabrics) {
    if (wanted == Fabric::kTcp) break;  // good enough: nothing behind it
    wire::FabricOffer offer;
    offer.fabric = FabricName(wanted);
    absl::StatusOr<std::string> data =
        wanted == Fabric::kShm && settings.shm_sharing == ShmSharing::kOff
            ? absl::FailedPreconditionError("shm_sharing is off")
            : FindFabric(offer.fabric)->Offer();
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
    pending_.push_back(
        FindFabric(offer.fabric)->Listen(token, Adapt(offer.fabric, done)));
  }
}

void SidePaths::Connect(const std::string& fabric, const std::string& offer,
                        const std::string& token, const Done& done) {
  pending_.push_back(
      FindFabric(fabric)->Connect(offer, token, Adapt(fabric, done)));
}

}  // namespace core
}  // namespace penstock
