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

// The costs of the unacknowledged parts of one sender. Thread-safe.
class Window {
 public:
  // Makes an empty window. Parts also count in `outer`, unless it is null.
  explicit Window(std::shared_ptr<Window> outer = nullptr)
      : outer_(std::move(outer)) {}

  int64_t open() const { return open_.load(std::memory_order_acquire); }
  void Add(int64_t cost) {
    open_.fetch_add(cost, std::memory_order_acq_rel);
    if (outer_ != nullptr) outer_->Add(cost);
  }

 private:
  const std::shared_ptr<Window> outer_;
  std::atomic<int64_t> open_{0};
};

}  // namespace penstock::collectives

#endif  // PENSTOCK_COLLECTIVES_NET_WINDOW_H_
