#include "transport/memory/stable_memory.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "transport/base/mutex.h"
#include "transport/base/per_process.h"

namespace penstock {
namespace memory {
namespace {

struct Registry {
  base::Mutex mu;
  // The declared ranges, by their first address. They do not overlap.
  std::map<const uint8_t*, std::shared_ptr<StableRange>> ranges
      ABSL_GUARDED_BY(mu);
  std::vector<std::weak_ptr<StableMemoryWatcher>> watchers ABSL_GUARDED_BY(mu);
};

Registry* TheRegistry() { return base::PerProcess<Registry>::Get(); }

std::vector<std::shared_ptr<StableMemoryWatcher>> LivingLocked(
    Registry* registry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(registry->mu) {
  std::vector<std::shared_ptr<StableMemoryWatcher>> living;
  auto& all = registry->watchers;
  const auto end = std::remove_if(all.begin(), all.end(), [&](const auto& one) {
    living.push_back(one.lock());
    if (living.back() != nullptr) return false;
    living.pop_back();
    return true;
  });
  all.erase(end, all.end());
  return living;
}

}  // namespace

void WatchStableMemory(std::weak_ptr<StableMemoryWatcher> watcher) {
  Registry* const registry = TheRegistry();
  base::MutexLock lock(&registry->mu);
  registry->watchers.push_back(std::move(watcher));
}

absl::StatusOr<std::unique_ptr<StableMemory>> StableMemory::Declare(
    const void* data, size_t size) {
  const auto* const begin = static_cast<const uint8_t*>(data);
  if (begin == nullptr || size == 0) {
    return absl::InvalidArgumentError("no memory to declare");
  }
  Registry* const registry = TheRegistry();
  base::MutexLock lock(&registry->mu);
  // Only the ranges at `next` and right before `next` can overlap the new
  // range.
  const auto next = registry->ranges.lower_bound(begin);
  const bool overlaps_next = next != registry->ranges.end() &&
                             static_cast<size_t>(next->first - begin) < size;
  const bool overlaps_last =
      next != registry->ranges.begin() &&
      static_cast<size_t>(begin - std::prev(next)->first) <
          std::prev(next)->second->size();
  if (overlaps_next || overlaps_last) {
    return absl::AlreadyExistsError(
        "a part of this memory is registered already");
  }
  auto range = std::make_shared<StableRange>(begin, size);
  registry->ranges[begin] = range;
  return absl::WrapUnique(new StableMemory(std::move(range)));
}

StableMemory::StableMemory(std::shared_ptr<StableRange> range)
    : range_(std::move(range)) {}

StableMemory::~StableMemory() {
  Registry* const registry = TheRegistry();
  std::vector<std::shared_ptr<StableMemoryWatcher>> watchers;
  {
    base::MutexLock lock(&registry->mu);
    // Removes the range. In a forked child, `ranges` does not contain it.
    const auto declared = registry->ranges.find(range_->data());
    if (declared != registry->ranges.end() && declared->second == range_) {
      registry->ranges.erase(declared);
    }
    range_->is_over_ = true;
    watchers = LivingLocked(registry);
  }
  for (const auto& watcher : watchers) watcher->OnRangeEnded(*range_);
}

std::shared_ptr<const StableRange> FindStable(const void* data, size_t size) {
  const auto* const begin = static_cast<const uint8_t*>(data);
  Registry* const registry = TheRegistry();
  base::MutexLock lock(&registry->mu);
  auto it = registry->ranges.upper_bound(begin);
  if (it == registry->ranges.begin()) return nullptr;
  const StableRange& last = *(--it)->second;
  const size_t offset = static_cast<size_t>(begin - last.data());
  if (offset > last.size() || size > last.size() - offset) return nullptr;
  return it->second;
}

}  // namespace memory
}  // namespace penstock
