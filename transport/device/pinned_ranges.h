// Keeps host memory pinned that is repeatedly copied to and from devices.

#ifndef PENSTOCK_TRANSPORT_DEVICE_PINNED_RANGES_H_
#define PENSTOCK_TRANSPORT_DEVICE_PINNED_RANGES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "transport/base/mutex.h"
#include "transport/device/handles.h"
#include "transport/memory/stable_memory.h"

namespace penstock {
namespace device {

// Pins ranges that were declared stable (memory::StableMemory). When a part of
// a range is first used, the whole range is pinned, and stays pinned until the
// promise ends. Examples of stable ranges are the pool of shm, and memory of
// RegisterMemory(). A device can copy pinned memory without the CPU, at full
// speed. Thread-safe.
class PinnedRanges : public memory::StableMemoryWatcher {
 public:
  using Pin = std::shared_ptr<const PinnedRange>;

  // Pins at most `budget` bytes.
  static std::shared_ptr<PinnedRanges> Create(uint64_t budget);
  PinnedRanges(const PinnedRanges&) = delete;
  PinnedRanges& operator=(const PinnedRanges&) = delete;

  // Returns an object that keeps [data, data + size) pinned for all devices.
  // Returns null in these cases:
  // - the memory is in no stable range, or in a short one;
  // - the budget has no room for the range;
  // - the driver refuses the range. The driver is asked once for each range.
  Pin Get(Device* device, const void* data, size_t size);

  uint64_t pinned_bytes() const;

  void OnRangeEnded(const memory::StableRange& range) override;

 private:
  struct Entry {
    std::shared_ptr<const memory::StableRange> promise;
    Pin pin;             // null: the range cannot be pinned
    uint64_t bytes = 0;  // pinned
  };

  explicit PinnedRanges(uint64_t budget) : budget_(budget) {}
  Pin AddLocked(Device* device,
                const std::shared_ptr<const memory::StableRange>& promise)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const uint64_t budget_;
  mutable base::Mutex mu_;
  uint64_t pinned_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<const uint8_t*, Entry> by_begin_ ABSL_GUARDED_BY(mu_);
};

}  // namespace device
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_DEVICE_PINNED_RANGES_H_
