// Copies between one device and the host, or other devices.

#ifndef PENSTOCK_TRANSPORT_DEVICE_COPIER_H_
#define PENSTOCK_TRANSPORT_DEVICE_COPIER_H_

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "transport/device/device.h"
#include "transport/device/lane.h"
#include "transport/device/peers.h"
#include "transport/device/pinned_ranges.h"
#include "transport/device/slots.h"

namespace penstock {
namespace device {

// One copy from device memory to device memory.
struct DeviceCopy {
  abi::Address from = 0;
  abi::Address to = 0;
  size_t bytes = 0;
};

// Copies in streams of its own, so that no other work on the device waits.
// Blocks the calling thread until all copies of a call have run.
//
// The device itself copies pinned memory of the host (PinnedRanges), in one
// piece. Other memory goes through pinned slots: while the device copies one
// slot, the CPU copies another. If no memory can be pinned for slots, the
// driver copies, more slowly.
//
// In all cases, the device begins once all events of `after` have completed.
// The events may belong to any device. After an error nothing writes to the
// caller's memory any more, and its contents are undefined. Thread-safe.
class Copier {
 public:
  struct Options {
    // The number and the size of a transfer's slots. Two slots keep both the
    // device and the CPU busy; more slots even out disturbances. With 2 MiB,
    // the fixed cost of a chunk (about 10 us) is less than a tenth of its copy
    // over PCIe; see docs/lab/2026-11-25-gpus-simulated.md.
    int slots = 4;
    size_t slot_bytes = 2 << 20;
    // Caps the simultaneous transfers that have slots. Their pinned memory is
    // therefore at most 64 MiB.
    int lanes = 8;
  };

  // Refers to `device` and `pinned`, which must outlive the copier.
  Copier(Device* device, PinnedRanges* pinned, const Options& options);
  Copier(const Copier&) = delete;
  Copier& operator=(const Copier&) = delete;

  absl::Status ToHost(absl::Span<const HostCopy> copies,
                      absl::Span<const abi::Event> after);
  absl::Status FromHost(absl::Span<const HostCopy> copies,
                        absl::Span<const abi::Event> after);
  // Copies from this device to `to`, which may be the same device. If the two
  // devices can reach each other, no byte goes through the host.
  absl::Status OnDevice(Device* to, absl::Span<const DeviceCopy> copies,
                        absl::Span<const abi::Event> after);

 private:
  enum class Direction { kToHost, kFromHost };

  absl::Status CopyHost(Direction direction, absl::Span<const HostCopy> copies,
                        absl::Span<const abi::Event> after);
  // Acquires a lane, calls `run(lane)`, which queues copies in the lane's
  // stream, and waits until the copies have run.
  template <typename Run>
  absl::Status InLane(absl::Span<const abi::Event> after, Run run);

  Device* const device_;
  PinnedRanges* const pinned_;
  Lanes lanes_;
  Peers peers_;
};

}  // namespace device
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_DEVICE_COPIER_H_
