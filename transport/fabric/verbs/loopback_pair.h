// Two queue pairs of one device, connected to one another without the
// connection manager.

#ifndef PENSTOCK_TRANSPORT_FABRIC_VERBS_LOOPBACK_PAIR_H_
#define PENSTOCK_TRANSPORT_FABRIC_VERBS_LOOPBACK_PAIR_H_

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "transport/fabric/verbs/handles.h"

namespace penstock {
namespace fabric {
namespace verbs {

// The addresses by which a port of a device reaches itself.
struct LoopbackRoute {
  uint8_t port = 0;
  ibv_mtu mtu = IBV_MTU_1024;
  ibv_ah_attr address = {};
};

// Returns the route from a port to itself. Returns NOT_FOUND if the port has no
// address, or is down.
absl::StatusOr<LoopbackRoute> FindLoopback(Api* api, ibv_context* device,
                                           uint8_t port);

// A pair of queue pairs. One reads memory that the other exposes, one request
// at a time. Destroy windows that were bound through the pair before the pair.
// Destroy the protection domain and the completion queue after the pair. Not
// thread-safe.
class LoopbackPair {
 public:
  // Makes and connects two queue pairs that both complete to `queue`.
  static absl::StatusOr<LoopbackPair> Create(Api* api, ibv_pd* pd,
                                             ibv_cq* queue,
                                             const LoopbackRoute& route);

  ibv_qp* reader() const { return reader_.get(); }
  ibv_qp* owner() const { return owner_.get(); }

 private:
  LoopbackPair(QueuePair reader, QueuePair owner)
      : reader_(std::move(reader)), owner_(std::move(owner)) {}

  QueuePair reader_;
  QueuePair owner_;
};

// Posts `request` at `qp`, and waits for its completion. No other request may
// be in flight at `qp`. Returns the request's status, or DEADLINE_EXCEEDED
// after `deadline` (SteadyNow()).
absl::StatusOr<ibv_wc_status> DoRequest(Api* api, ibv_qp* qp,
                                        ibv_send_wr request,
                                        absl::Time deadline);

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_LOOPBACK_PAIR_H_
