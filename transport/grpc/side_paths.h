// The fabrics of this process, and one connection's attempts to use them.

#ifndef PENSTOCK_TRANSPORT_GRPC_SIDE_PATHS_H_
#define PENSTOCK_TRANSPORT_GRPC_SIDE_PATHS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "transport/fabric/fabric.h"
#include "transport/settings/settings.h"
#include "transport/wire/hello.h"

namespace penstock {
namespace core {

// The only place that names the concrete fabrics beside tcp. Used by one
// thread at a time; callbacks come on threads of the fabrics.
class SidePaths {
 public:
  using Done = std::function<void(
      const std::string& fabric,
      absl::StatusOr<std::shared_ptr<fabric::Endpoint>> path)>;

  // `is_private`: the connection's security promises that nobody else reads
  // along, or changes anything.
  SidePaths(const Settings& settings, bool is_private)
      : settings_(settings), is_private_(is_private) {}

  // What to say in the hello about each wanted fabric, tcp excepted.
  std::vector<wire::FabricOffer> Offers() const;

  // Waits for the peer on each usable one of `offers`.
  void Listen(const std::vector<wire::FabricOffer>& offers,
              const std::string& token, const Done& done);
  void Connect(const std::string& fabric, const std::string& offer,
               const std::string& token, const Done& done);
  // Gives up what is pending.
  void Cancel() { pending_.clear(); }

 private:
  const Settings settings_;
  const bool is_private_;
  std::vector<std::unique_ptr<fabric::PendingConnect>> pending_;
};

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_SIDE_PATHS_H_
