// The resources of one transfer between a device and the host: a stream of its
// own, and pinned memory.

#ifndef PENSTOCK_TRANSPORT_DEVICE_LANE_H_
#define PENSTOCK_TRANSPORT_DEVICE_LANE_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "transport/base/mutex.h"
#include "transport/device/handles.h"

namespace penstock {
namespace device {

// The resources of one transfer at a time. Not thread-safe.
class Lane {
 public:
  // Creates a lane without slots if memory cannot be pinned.
  static absl::StatusOr<std::unique_ptr<Lane>> Create(Device* device, int slots,
                                                      size_t slot_bytes);

  abi::Stream stream() const { return stream_.get(); }
  // Returns an event that is not recorded yet. To wait for earlier work of a
  // stream, the lane's user records the event in that stream and waits for the
  // event.
  abi::Event mark() const { return mark_.get(); }

  int slots() const { return static_cast<int>(slot_events_.size()); }
  size_t slot_bytes() const { return slot_bytes_; }
  char* slot(int index) const {
    return static_cast<char*>(pinned_.get()) + index * slot_bytes_;
  }
  // Returns the event that completes when the device no longer uses the slot.
  abi::Event slot_event(int index) const { return slot_events_[index].get(); }

 private:
  Lane() = default;

  size_t slot_bytes_ = 0;
  // Members are destroyed from the last to the first.
  PinnedBlock pinned_;
  Stream stream_;
  Event mark_;
  std::vector<Event> slot_events_;
};

// The lanes of one device. Thread-safe.
class Lanes {
 public:
  // Refers to `device`, which must outlive this object. Each lane has `slots`
  // slots. At most `max_with_slots` lanes in use have slots.
  Lanes(Device* device, int max_with_slots, int slots, size_t slot_bytes)
      : device_(device),
        max_with_slots_(max_with_slots),
        slots_(slots),
        slot_bytes_(slot_bytes) {}

  // Returns a lane for exclusive use, new or reused. Never waits.
  absl::StatusOr<std::unique_ptr<Lane>> Take();
  // Returns a lane with slots, for the next transfer. Drops a lane without
  // slots. The lane's stream must have no work left.
  void GiveBack(std::unique_ptr<Lane> lane);
  // Drops a lane instead of keeping it, after an error.
  void Drop(std::unique_ptr<Lane> lane);

 private:
  Device* const device_;
  const int max_with_slots_;
  const int slots_;
  const size_t slot_bytes_;

  base::Mutex mu_;
  int with_slots_ ABSL_GUARDED_BY(mu_) = 0;  // in use or free
  std::vector<std::unique_ptr<Lane>> free_ ABSL_GUARDED_BY(mu_);
};

}  // namespace device
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_DEVICE_LANE_H_
