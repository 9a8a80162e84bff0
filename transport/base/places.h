// Counts how many objects of a process share a limited resource.

#ifndef PENSTOCK_TRANSPORT_BASE_PLACES_H_
#define PENSTOCK_TRANSPORT_BASE_PLACES_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace penstock {
namespace base {

// A limited number of places. Must outlive its places. Thread-safe.
class Places {
 public:
  struct Return {
    void operator()(Places* places) const {
      places->taken_.fetch_sub(1, std::memory_order_relaxed);
    }
  };
  // A taken place, which returns to its Places when destroyed. Null if no place
  // was free.
  using Place = std::unique_ptr<Places, Return>;

  Places() = default;
  Places(const Places&) = delete;
  Places& operator=(const Places&) = delete;

  // Takes a place. Returns null if `most` places or more are taken.
  Place Take(int64_t most) {
    Place place(this);
    const bool is_free = taken_.fetch_add(1, std::memory_order_relaxed) < most;
    return is_free ? std::move(place) : nullptr;
  }

 private:
  std::atomic<int64_t> taken_{0};
};

}  // namespace base
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_BASE_PLACES_H_
