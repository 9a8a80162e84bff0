// Caps the connections of this process's servers that are negotiating.

#ifndef PENSTOCK_TRANSPORT_PATHS_HALF_OPEN_H_
#define PENSTOCK_TRANSPORT_PATHS_HALF_OPEN_H_

#include <atomic>
#include <memory>

#include "transport/metrics/registry.h"

namespace penstock {
namespace paths {

// Caps the number of simultaneous negotiations. A negotiation holds a slot from
// the client's offer until both sides have agreed on a path, or agreed to use
// none. A stalled negotiation ends at its timeout: 5 s for the hello, 15 s for
// the path. If no slot is free, the server serves a new client over HTTP/2.
// Thread-safe.
class HalfOpen {
 public:
  // A slot, which becomes free when the last reference is destroyed. Must not
  // outlive its HalfOpen.
  using Slot = std::shared_ptr<void>;

  // Returns the process's instance for gRPC servers, whose port is open to any
  // client. The instance is never destroyed. A forked child gets a new
  // instance. The cap is 4096, far above the simultaneous negotiations of
  // honest clients in any cluster. 4096 stalled negotiations take a few tens of
  // MiB.
  static HalfOpen* Get();
  // Returns a second instance with the same cap, for clients that have shown a
  // token. Strangers at gRPC's port therefore cannot use up the slots of these
  // clients.
  static HalfOpen* OfTokenHolders();

  explicit HalfOpen(int limit);

  // Returns a slot, or null if all slots are taken.
  Slot Enter();

 private:
  const int limit_;
  std::atomic<int> count_{0};
  const metrics::Level shown_limit_;
  metrics::Level shown_;
};

}  // namespace paths
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PATHS_HALF_OPEN_H_
