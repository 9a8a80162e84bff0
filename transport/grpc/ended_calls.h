// Counts the calls that have ended and that gRPC has not destroyed.

#ifndef PENSTOCK_TRANSPORT_GRPC_ENDED_CALLS_H_
#define PENSTOCK_TRANSPORT_GRPC_ENDED_CALLS_H_

#include <atomic>

namespace penstock {
namespace core {

// The number of a connection's ended calls whose memory gRPC has not freed.
// gRPC keeps a call's memory until it destroys the call's stream. Thread-safe.
class EndedCalls {
 public:
  void Add() { ended_.fetch_add(1, std::memory_order_relaxed); }

  // Records that gRPC has destroyed an ended stream. Returns true if this makes
  // TooMany() false again.
  bool Remove() {
    if (ended_.fetch_sub(1) - 1 > kMaxEnded) return false;
    return awaits_destruction_.load(std::memory_order_relaxed) &&
           awaits_destruction_.exchange(false);
  }

  // Returns true while gRPC must not receive new calls.
  bool TooMany() {
    if (ended_.load(std::memory_order_relaxed) <= kMaxEnded) return false;
    awaits_destruction_.store(true);
    return ended_.load() > kMaxEnded;  // gRPC may just have destroyed one
  }

 private:
  // Caps ended calls. A call takes about 10 KiB of gRPC's memory, but opening
  // and resetting a stream costs a peer only about 100 bytes. Honest peers have
  // only a few ended calls at a time.
  static constexpr int kMaxEnded = 2048;

  std::atomic<int> ended_{0};
  std::atomic<bool> awaits_destruction_{false};
};

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_ENDED_CALLS_H_
