#include "transport/memory/destinations.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <utility>

namespace penstock {
namespace memory {
namespace {

std::vector<Destination> UsableBySize(const std::vector<Destination>& ranges) {
  std::vector<Destination> usable;
  std::map<const uint8_t*, size_t, std::less<const uint8_t*>> taken;
  for (const Destination& range : ranges) {
    if (range.data == nullptr || range.size == 0) continue;
    const auto next = taken.lower_bound(range.data);
    const bool overlaps_next =
        next != taken.end() &&
        static_cast<size_t>(next->first - range.data) < range.size;
    const bool overlaps_last =
        next != taken.begin() &&
        static_cast<size_t>(range.data - std::prev(next)->first) <
            std::prev(next)->second;
    if (overlaps_next || overlaps_last) continue;
    taken.emplace(range.data, range.size);
    usable.push_back(range);
  }
  std::stable_sort(usable.begin(), usable.end(),
                   [](const Destination& a, const Destination& b) {
                     return a.size < b.size;
                   });
  return usable;
}

bool HasDevice(const std::vector<Destination>& ranges) {
  return std::any_of(
      ranges.begin(), ranges.end(),
      [](const Destination& range) { return range.device != nullptr; });
}

}  // namespace

class Destinations::Taken {
 public:
  explicit Taken(std::shared_ptr<Destinations> of) : of_(std::move(of)) {}
  Taken(const Taken&) = delete;
  Taken& operator=(const Taken&) = delete;
  ~Taken() { of_->taken_.store(false, std::memory_order_release); }

 private:
  const std::shared_ptr<Destinations> of_;
};

Destinations::Destinations(const std::vector<Destination>& ranges,
                           std::shared_ptr<const void> owner,
                           Registered registered, bool anywhere)
    : owner_(std::move(owner)),
      by_size_(UsableBySize(ranges)),
      anywhere_(anywhere || HasDevice(by_size_)) {
  if (registered != Registered::kForLife) return;
  for (const Destination& range : by_size_) {
    if (range.device != nullptr) continue;
    // Ignores a failure: the program has then declared the range itself, and
    // the range stays registered as long as the program's declaration.
    auto promise = StableMemory::Declare(range.data, range.size);
    if (promise.ok()) promises_.push_back(*std::move(promise));
  }
}

std::shared_ptr<const void> Destinations::Take(
    std::shared_ptr<Destinations> self) {
  if (self->taken_.exchange(true, std::memory_order_acq_rel)) return nullptr;
  return std::make_shared<const Taken>(std::move(self));
}

}  // namespace memory
}  // namespace penstock
