// Connects to a peer's listener.

#ifndef PENSTOCK_TRANSPORT_FABRIC_VERBS_CONNECTOR_H_
#define PENSTOCK_TRANSPORT_FABRIC_VERBS_CONNECTOR_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "transport/fabric/attempt.h"
#include "transport/fabric/timed_setup.h"
#include "transport/fabric/verbs/cm_channel.h"
#include "transport/fabric/verbs/cm_connection.h"
#include "transport/fabric/verbs/formats/address.h"
#include "transport/fabric/verbs/site.h"

namespace penstock {
namespace fabric {
namespace verbs {

// A pair of addresses to try. Without a source, the system chooses one.
struct Route {
  absl::optional<Address> source;
  Address destination;
};

// One attempt to connect. Tries one route after another.
//
//   state       event              action                        next
//   kIdle       begins             resolve the first address     kAddress
//   kAddress    ADDR_RESOLVED      resolve the route             kRoute
//   kRoute      ROUTE_RESOLVED     make the queue pair, connect  kConnecting
//   kConnecting ESTABLISHED        check the proof, finish       ended
//   any of the  error, or another  the next route, if any        kAddress
//   three       event              else finish with the error    ended
//   and the transitions of TimedSetup
class Connector : public CmHandler, public TimedSetup {
 public:
  // `routes` must not be empty.
  static std::shared_ptr<Connector> Create(const Site& site,
                                           std::vector<Route> routes,
                                           std::shared_ptr<Attempt> attempt);

  void OnCmEvent(CmEvent event) override;

 private:
  enum class State { kIdle, kAddress, kRoute, kConnecting };

  Connector(const Site& site, std::vector<Route> routes,
            std::shared_ptr<Attempt> attempt);

  void BeginOnLoop() override;
  void ReleaseOnLoop() override { DropId(); }
  // Tries the next route. If there is none, finishes with `error`.
  void TryNextOnLoop(absl::Status error);
  absl::Status ResolveAddress(Route route);
  absl::Status ResolveRoute();
  absl::Status Connect();
  // Checks the peer's answer and proof, and makes the endpoint.
  absl::StatusOr<std::unique_ptr<Endpoint>> Establish(const CmEvent& event);
  // Handles `event`. Returns an error to try the next route.
  absl::Status Advance(const CmEvent& event);
  // Drops the current route, with its identifier and connection.
  void DropId();

  const Site site_;
  State state_ = State::kIdle;
  std::vector<Route> routes_;  // the next one last
  CmId id_;                    // none once there is a connection
  std::shared_ptr<CmConnection> connection_;
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_CONNECTOR_H_
