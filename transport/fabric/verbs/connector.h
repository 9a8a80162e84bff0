// Reaches a peer's listener.

#ifndef PENSTOCK_TRANSPORT_FABRIC_VERBS_CONNECTOR_H_
#define PENSTOCK_TRANSPORT_FABRIC_VERBS_CONNECTOR_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "transport/fabric/attempt.h"
#include "transport/fabric/verbs/address.h"
#include "transport/fabric/verbs/cm_channel.h"
#include "transport/fabric/verbs/connection.h"
#include "transport/fabric/verbs/site.h"
#include "transport/progress/event_loop.h"

namespace penstock {
namespace fabric {
namespace verbs {

// A pair of addresses to try; the source may be left to the system.
struct Route {
  absl::optional<Address> source;
  Address destination;
};

// One attempt to connect, over one route after the other. Everything but
// Create() runs on the event loop's thread. It lives by its timer, which shares
// it.
//
//   state       event              action                        next
//   kIdle       Start              resolve the first address     kAddress
//   kAddress    ADDR_RESOLVED      resolve the route             kRoute
//   kRoute      ROUTE_RESOLVED     make the queue pair, connect  kConnecting
//   kConnecting ESTABLISHED        check the proof, finish       kEnded
//   any of the  error, or another  the next route, if any        kAddress
//   three       event              else finish with the error    kEnded
//   any         time is over       finish with DEADLINE_EXCEEDED kEnded
//   any         Stop               none                          kEnded
class Connector : public CmHandler,
                  public std::enable_shared_from_this<Connector> {
 public:
  static std::shared_ptr<Connector> Create(const Site& site,
                                           std::shared_ptr<Attempt> attempt);

  // At least one route.
  void StartOnLoop(std::vector<Route> routes);
  // The attempt was cancelled.
  void StopOnLoop();
  void OnCmEvent(CmEvent event) override;

 private:
  enum class State { kIdle, kAddress, kRoute, kConnecting, kEnded };

  Connector(const Site& site, std::shared_ptr<Attempt> attempt);

  void TryNextOnLoop(absl::Status error);
  absl::Status ResolveAddress(Route route);
  absl::Status ResolveRoute();
  absl::Status Connect();
  absl::StatusOr<std::unique_ptr<Endpoint>> Establish(const CmEvent& event);
  absl::Status Advance(const CmEvent& event);
  void DropId();
  void FinishOnLoop(absl::StatusOr<std::unique_ptr<Endpoint>> result);

  const Site site_;
  const std::shared_ptr<Attempt> attempt_;
  State state_ = State::kIdle;
  std::vector<Route> routes_;  // the next one last
  CmId id_;                    // until there is a connection
  std::shared_ptr<Connection> connection_;
  progress::EventLoop::Id timer_ = 0;
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_CONNECTOR_H_
