// Parts that a peer has not acknowledged.

#ifndef PENSTOCK_COLLECTIVES_NET_WINDOW_H_
#define PENSTOCK_COLLECTIVES_NET_WINDOW_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace penstock::collectives {

// Returns the memory that a part of `bytes` costs its receiver. Includes about
// 512 bytes for the record of the part and the open call, so that empty parts
// are bounded, too.
inline int64_t CostOfPart(size_t bytes) {
  return static_cast<int64_t>(bytes) + 512;
}

// The costs of the unacknowledged parts of one sender. Records if a thread
// waits for room, because most acknowledgements need not wake a thread.
// Thread-safe.
class Window {
 public:
  // Makes an empty window. The window's parts count in `outer` too, if `outer`
  // is not null.
  explicit Window(std::shared_ptr<Window> outer = nullptr)
      : outer_(std::move(outer)) {}

  // Returns true if the costs are below `limit`. If they are not, the next
  // Remove() returns true.
  bool IsBelow(int64_t limit) {
    if (open_.load(std::memory_order_acquire) < limit) return true;
    // Stores `awaited_` before reading `open_`, while Remove() changes `open_`
    // before reading `awaited_`. At least one of the two thus sees the other's
    // change.
    awaited_.store(true, std::memory_order_seq_cst);
    return open_.load(std::memory_order_seq_cst) < limit;
  }
  void Add(int64_t cost) {
    open_.fetch_add(cost, std::memory_order_acq_rel);
    if (outer_ != nullptr) outer_->Add(cost);
  }
  // Removes a part. Returns true if a thread may wait for room here or in the
  // outer window.
  bool Remove(int64_t cost) {
    open_.fetch_sub(cost, std::memory_order_seq_cst);
    bool awaited = awaited_.load(std::memory_order_seq_cst) &&
                   awaited_.exchange(false, std::memory_order_relaxed);
    if (outer_ != nullptr) awaited |= outer_->Remove(cost);
    return awaited;
  }

 private:
  const std::shared_ptr<Window> outer_;
  std::atomic<int64_t> open_{0};
  std::atomic<bool> awaited_{false};
};

}  // namespace penstock::collectives

#endif  // PENSTOCK_COLLECTIVES_NET_WINDOW_H_
