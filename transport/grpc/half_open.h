// How many connections of this process's servers may be negotiating at once.

#ifndef PENSTOCK_TRANSPORT_GRPC_HALF_OPEN_H_
#define PENSTOCK_TRANSPORT_GRPC_HALF_OPEN_H_

#include <atomic>
#include <memory>

namespace penstock {
namespace core {

// Thread-safe. A negotiation holds its place from the client's offer until both
// sides have agreed on a path, or on having none. Its time limits, 5 s for the
// hello and 15 s for the path, end one that does not go on: so the limit is
// also one of rate, for peers that only begin. Clients that find no place are
// served over HTTP/2.
class HalfOpen {
 public:
  // Given back when the last share is gone. The HalfOpen outlives it.
  using Place = std::shared_ptr<void>;

  // Those of this process. Far more than any cluster opens in the milliseconds
  // that an honest negotiation takes, and a few tens of MiB of memory.
  static HalfOpen* Get();

  explicit HalfOpen(int limit) : limit_(limit) {}

  // Null: there are too many.
  Place Enter();

 private:
  const int limit_;
  std::atomic<int> count_{0};
};

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_HALF_OPEN_H_
