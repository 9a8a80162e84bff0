// A queue that reuses its memory.

#ifndef PENSTOCK_TRANSPORT_BASE_FIFO_H_
#define PENSTOCK_TRANSPORT_BASE_FIFO_H_

#include <cstddef>
#include <utility>

#include "absl/container/inlined_vector.h"

namespace penstock {
namespace base {

// A first-in, first-out queue. Stores up to kInline items without heap memory,
// and reuses the memory that a longer queue took. (std::deque allocates and
// frees as items pass through.) Amortised constant time. Not thread-safe.
template <typename T, size_t kInline = 1>
class Fifo {
 public:
  using iterator = typename absl::InlinedVector<T, kInline>::iterator;

  bool empty() const { return head_ == items_.size(); }
  size_t size() const { return items_.size() - head_; }
  T& front() { return items_[head_]; }
  const T& front() const { return items_[head_]; }
  T& back() { return items_.back(); }
  iterator begin() { return items_.begin() + head_; }
  iterator end() { return items_.end(); }

  void push_back(T item) { items_.push_back(std::move(item)); }
  // Adds a default item and returns it, for the caller to fill in.
  T& emplace_back() { return items_.emplace_back(); }

  // Removes the oldest item and returns it. Needs !empty().
  T pop_front() {
    T item;
    pop_front(&item);
    return item;
  }
  void pop_front(T* item) {
    *item = std::move(items_[head_++]);
    if (items_.size() == 1) {  // the usual case
      items_.pop_back();
      head_ = 0;
    } else if (head_ == items_.size() ||
               (head_ >= kLongest && 2 * head_ >= items_.size())) {
      // Erases popped items once they are at least half of all.
      items_.erase(items_.begin(), begin());
      head_ = 0;
    }
  }

  void clear() {
    items_.erase(items_.begin(), items_.end());
    head_ = 0;
  }

 private:
  static constexpr size_t kLongest = 32;  // fewer popped items are left alone

  absl::InlinedVector<T, kInline> items_;
  size_t head_ = 0;  // the number of popped items in items_
};

template <typename T, size_t kInline>
constexpr size_t Fifo<T, kInline>::kLongest;

}  // namespace base
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_BASE_FIFO_H_
