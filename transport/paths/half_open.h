// Limits how many connections of this process's servers may be negotiating.

#ifndef PENSTOCK_TRANSPORT_PATHS_HALF_OPEN_H_
#define PENSTOCK_TRANSPORT_PATHS_HALF_OPEN_H_

#include <atomic>
#include <memory>

#include "transport/metrics/registry.h"

namespace penstock {
namespace paths {

// A negotiation holds a place from the client's offer until both sides have
// agreed on a path, or on none. One that stops ends at its time limit, 5 s for
// the hello and 15 s for the path, so that the number of places also limits the
// rate of peers that begin and then stop. A client that finds no place is
// served over HTTP/2. Thread-safe.
class HalfOpen {
 public:
  // Frees the place when the last share is gone. Must not outlive its HalfOpen.
  using Place = std::shared_ptr<void>;

  // Returns the process's instance for gRPC's servers, whose port is open to
  // anybody. The instance is never destroyed. The child of a fork gets another
  // instance. The limit is far above the number of honest negotiations that any
  // cluster has under way at once. Connections at the limit take a few tens of
  // MiB of memory.
  static HalfOpen* Get();
  // Returns another of the same kind and limit, for clients that have shown a
  // token: strangers at gRPC's port take no place from these.
  static HalfOpen* OfTokenHolders();

  explicit HalfOpen(int limit);

  // Returns null if all places are taken.
  Place Enter();

 private:
  const int limit_;
  std::atomic<int> count_{0};
  const metrics::Level shown_limit_;
  metrics::Level shown_;
};

}  // namespace paths
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PATHS_HALF_OPEN_H_
