#include "transport/device/pinned_ranges.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/base/log.h"

namespace penstock {
namespace device {
namespace {

constexpr uintptr_t kPageBytes = 4096;
// The smallest range that is pinned, in bytes. A shorter range may share pages
// with other memory, and copying it through a slot costs no more than looking
// up the pin.
constexpr size_t kMinRangeBytes = 64 * 1024;

uintptr_t RoundUp(uintptr_t address) {
  return (address + kPageBytes - 1) & ~(kPageBytes - 1);
}

}  // namespace

std::shared_ptr<PinnedRanges> PinnedRanges::Create(uint64_t budget) {
  std::shared_ptr<PinnedRanges> ranges(new PinnedRanges(budget));
  memory::WatchStableMemory(ranges);
  return ranges;
}

PinnedRanges::Pin PinnedRanges::Get(Device* device, const void* data,
                                    size_t size) {
  std::shared_ptr<const memory::StableRange> promise =
      memory::FindStable(data, size);
  if (promise == nullptr || promise->size() < kMinRangeBytes) return nullptr;
  base::MutexLock lock(&mu_);
  const auto found = by_begin_.find(promise->data());
  if (found != by_begin_.end() && found->second.promise == promise) {
    return found->second.pin;
  }
  return AddLocked(device, promise);
}

PinnedRanges::Pin PinnedRanges::AddLocked(
    Device* device, const std::shared_ptr<const memory::StableRange>& promise) {
  Entry entry;
  entry.promise = promise;
  const auto address = reinterpret_cast<uintptr_t>(promise->data());
  const uintptr_t begin = address & ~(kPageBytes - 1);
  const uint64_t bytes = RoundUp(address + promise->size()) - begin;
  if (bytes <= budget_ - pinned_bytes_) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): where its first page begins
    auto pin = device::Pin(device, reinterpret_cast<void*>(begin), bytes);
    if (pin.ok()) {
      entry.pin = std::make_shared<const PinnedRange>(*std::move(pin));
      entry.bytes = bytes;
    } else {
      base::LogWarning(absl::StrCat(
          "copies between a device and the pool go through other memory: ",
          pin.status().message()));
    }
  }
  // Stores no pin if the promise has ended and OnRangeEnded() has already run.
  if (promise->is_over()) return nullptr;
  Pin made = entry.pin;
  pinned_bytes_ += entry.bytes;
  by_begin_[promise->data()] = std::move(entry);
  return made;
}

uint64_t PinnedRanges::pinned_bytes() const {
  base::MutexLock lock(&mu_);
  return pinned_bytes_;
}

void PinnedRanges::OnRangeEnded(const memory::StableRange& range) {
  Pin ended;  // destroyed after the lock is released
  base::MutexLock lock(&mu_);
  const auto found = by_begin_.find(range.data());
  if (found == by_begin_.end() || found->second.promise.get() != &range) return;
  ended = std::move(found->second.pin);
  pinned_bytes_ -= found->second.bytes;
  by_begin_.erase(found);
}

}  // namespace device
}  // namespace penstock
