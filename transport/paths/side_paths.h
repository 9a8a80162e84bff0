// A connection's attempts at a fast path, over the fabrics of this process.

#ifndef PENSTOCK_TRANSPORT_PATHS_SIDE_PATHS_H_
#define PENSTOCK_TRANSPORT_PATHS_SIDE_PATHS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "transport/fabric/fabric.h"
#include "transport/settings/settings.h"
#include "transport/wire/hello.h"

namespace penstock {
namespace fabric {
namespace stripes {
class StripesFabric;
}  // namespace stripes
}  // namespace fabric

namespace memory {
class DeviceAccess;
}  // namespace memory

namespace paths {

// The attempts of one connection to get a side path. Only side_paths.cc names
// the fabrics. Not thread-safe. Callbacks run on threads of the fabrics.
class SidePaths {
 public:
  // Called once for each attempt that is not cancelled, without locks.
  using Done = std::function<void(
      const std::string& fabric,
      absl::StatusOr<std::shared_ptr<fabric::Endpoint>> path)>;

  // `is_private` is true if the connection's security promises that nobody else
  // can read or change the traffic; see PromisesPrivacy().
  //
  // `devices` gives access to device memory. The peers read each other's device
  // memory directly unless the settings request copies. The object must live as
  // long as the process. Null if receivers on this connection read all bytes
  // with the CPU.
  //
  // `peer` is the peer's address, in gRPC's form. If empty, this side ignores
  // an offer of further sockets.
  SidePaths(const Settings& settings, bool is_private,
            memory::DeviceAccess* devices, const std::string& peer = "");
  SidePaths(SidePaths&&) noexcept;
  ~SidePaths();

  // Returns the offers for the hello: one for each fabric that precedes tcp in
  // the settings, and then an offer of further sockets, named tcp, if the
  // settings allow tcp and request more than one socket.
  std::vector<wire::FabricOffer> Offers() const;

  // Listens for the peer on each usable fabric of `offers`. The peer presents
  // `token`.
  void Listen(const std::vector<wire::FabricOffer>& offers,
              const std::string& token, const Done& done);
  // Connects to the peer over `fabric`. `offer` is from the peer's hello.
  void Connect(const std::string& fabric, const std::string& offer,
               const std::string& token, const Done& done);
  // Cancels all attempts.
  void Cancel() { pending_.clear(); }

 private:
  wire::FabricOffer OfferOf(Fabric wanted) const;
  // Returns the fabric with this name. Returns null for an unknown name.
  fabric::Fabric* Find(const std::string& name) const;

  const Settings settings_;
  const bool is_private_;
  memory::DeviceAccess* const devices_;
  // Null if this connection has one socket.
  std::unique_ptr<fabric::stripes::StripesFabric> stripes_;
  std::vector<std::unique_ptr<fabric::PendingConnect>> pending_;
};

}  // namespace paths
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PATHS_SIDE_PATHS_H_
