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

// Copies in streams of its own, so that nothing else of the device waits, and
// blocks the calling thread until all of a call's copies have run.
//
// Memory of the host that is pinned (PinnedRanges) is copied by the device in
// one piece. Other memory goes by way of pinned slots: while the device copies
// one, the CPU copies another. Without slots, as where no memory can be pinned,
// the driver takes care of it, more slowly.
//
// In all three, the device begins after each of `after` has come, which are of
// any device; and after an error nothing writes to the caller's memory any
// more, whose contents are undefined then. Thread-safe.
class Copier {
 public:
  struct Options {
    // How many slots a transfer has, and their size. Two slots keep the device
    // and the CPU both at work; more even out what disturbs one of them. With
    // 2 MiB, what a chunk costs beside its bytes (about 10 us) is less than a
    // tenth of its copy over PCIe; see
    // docs/lab/2026-11-25-gpus-simulated.md.
    int slots = 4;
    size_t slot_bytes = 2 << 20;
    // How many transfers have slots at once: 64 MiB of pinned memory.
    int lanes = 8;
  };

  // Both must outlive it.
  Copier(Device* device, PinnedRanges* pinned, const Options& options);
  Copier(const Copier&) = delete;
  Copier& operator=(const Copier&) = delete;

  absl::Status ToHost(absl::Span<const HostCopy> copies,
                      absl::Span<const abi::Event> after);
  absl::Status FromHost(absl::Span<const HostCopy> copies,
                        absl::Span<const abi::Event> after);
  // Copies from this device to `to`, which may be this one. Where the machine
  // lets the two reach each other, no byte goes by way of the host.
  absl::Status OnDevice(Device* to, absl::Span<const DeviceCopy> copies,
                        absl::Span<const abi::Event> after);

 private:
  enum class Direction { kToHost, kFromHost };

  absl::Status CopyHost(Direction direction, absl::Span<const HostCopy> copies,
                        absl::Span<const abi::Event> after);
  // Has `run(lane)` queue copies in a lane's stream, and waits for them.
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
