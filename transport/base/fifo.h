// A queue that keeps its memory.

#ifndef PENSTOCK_TRANSPORT_BASE_FIFO_H_
#define PENSTOCK_TRANSPORT_BASE_FIFO_H_

#include <cstddef>
#include <utility>

#include "absl/container/inlined_vector.h"

namespace penstock {
namespace base {

// First in, first out. The first kInline items need no memory of the heap, and
// what longer queues took is used again: unlike std::deque, which allocates and
// frees as it moves along. Amortised constant time. Not thread-safe.
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
  // One without content, to be filled in.
  T& emplace_back() { return items_.emplace_back(); }

  // Takes the oldest out; there must be one.
  T pop_front() {
    T item;
    pop_front(&item);
    return item;
  }
  void pop_front(T* item) {
    *item = std::move(items_[head_++]);
    if (items_.size() == 1) {  // as mostly
      items_.pop_back();
      head_ = 0;
    } else if (head_ == items_.size() ||
               (head_ >= kLongest && 2 * head_ >= items_.size())) {
      // Popped items are dropped when they are as many as the others, at least.
      items_.erase(items_.begin(), begin());
      head_ = 0;
    }
  }

  void clear() {
    items_.erase(items_.begin(), items_.end());
    head_ = 0;
  }

 private:
  static constexpr size_t kLongest = 32;  // popped items before the first look

  absl::InlinedVector<T, kInline> items_;
  size_t head_ = 0;  // of the items, so many are popped
};

template <typename T, size_t kInline>
constexpr size_t Fifo<T, kInline>::kLongest;

}  // namespace base
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_BASE_FIFO_H_
