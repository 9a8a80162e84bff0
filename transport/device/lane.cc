#include "transport/device/lane.h"

#include <utility>

#include "absl/memory/memory.h"

namespace penstock {
namespace device {

absl::StatusOr<std::unique_ptr<Lane>> Lane::Create(Device* device, int slots,
                                                   size_t slot_bytes) {
  auto lane = absl::WrapUnique(new Lane);
  absl::StatusOr<Stream> stream = CreateStream(device);
  if (!stream.ok()) return stream.status();
  lane->stream_ = *std::move(stream);
  absl::StatusOr<Event> mark = CreateEvent(device);
  if (!mark.ok()) return mark.status();
  lane->mark_ = *std::move(mark);
  if (slots == 0) return lane;
  absl::StatusOr<PinnedBlock> pinned =
      AllocatePinned(device, slots * slot_bytes);
  if (!pinned.ok()) return lane;
  std::vector<Event> events;
  for (int i = 0; i < slots; ++i) {
    absl::StatusOr<Event> event = CreateEvent(device);
    if (!event.ok()) return event.status();
    events.push_back(*std::move(event));
  }
  lane->pinned_ = *std::move(pinned);
  lane->slot_bytes_ = slot_bytes;
  lane->slot_events_ = std::move(events);
  return lane;
}

absl::StatusOr<std::unique_ptr<Lane>> Lanes::Take() {
  bool has_slots = false;
  {
    base::MutexLock lock(&mu_);
    if (!free_.empty()) {
      std::unique_ptr<Lane> lane = std::move(free_.back());
      free_.pop_back();
      return lane;
    }
    has_slots = with_slots_ < max_with_slots_;
    if (has_slots) ++with_slots_;
  }
  absl::StatusOr<std::unique_ptr<Lane>> lane =
      Lane::Create(device_, has_slots ? slots_ : 0, slot_bytes_);
  if (has_slots && (!lane.ok() || (*lane)->slots() == 0)) {
    base::MutexLock lock(&mu_);
    --with_slots_;
  }
  return lane;
}

void Lanes::GiveBack(std::unique_ptr<Lane> lane) {
  if (lane->slots() == 0) return;
  base::MutexLock lock(&mu_);
  free_.push_back(std::move(lane));
}

void Lanes::Drop(std::unique_ptr<Lane> lane) {
  if (lane->slots() == 0) return;
  base::MutexLock lock(&mu_);
  --with_slots_;
}

}  // namespace device
}  // namespace penstock
