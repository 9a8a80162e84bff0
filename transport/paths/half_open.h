// Limits how many connections of this process's servers may be negotiating.

#ifndef PENSTOCK_TRANSPORT_PATHS_HALF_OPEN_H_
#define PENSTOCK_TRANSPORT_PATHS_HALF_OPEN_H_

#include <atomic>
#include <memory>

#include "transport/metrics/registry.h"

namespace penstock {
namespace paths {

// A negotiation holds a place from the client's offer until both sides have
// agreed on a path, or on having none. A negotiation that does not go on ends
// at its time limit, 5 s for the hello and 15 s for the path. So this also
// limits the rate of peers that begin and do not go on. A client for which
// there is no place is served over HTTP/2. Thread-safe.
class HalfOpen {
 public:
  // Frees the place when the last share is gone. Must not outlive its HalfOpen.
  using Place = std::shared_ptr<void>;

  // Returns the limit of this process, never destroyed; the child of a fork has
  // one of its own. It is far more than any cluster opens in
  // the milliseconds that an honest negotiation takes, and costs a few tens of
  // MiB of memory.
  static HalfOpen* Get();

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
