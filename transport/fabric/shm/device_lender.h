// Lends allocations of devices' memory to a peer.

#ifndef PENSTOCK_TRANSPORT_FABRIC_SHM_DEVICE_LENDER_H_
#define PENSTOCK_TRANSPORT_FABRIC_SHM_DEVICE_LENDER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "transport/base/mutex.h"
#include "transport/memory/bytes.h"
#include "transport/memory/device_access.h"

namespace penstock {
namespace fabric {
namespace shm {

// Limits the number of allocations that a side passes over one connection at a
// time. kMaxPassedDeviceBytes limits their bytes. A receiver rejects more. An
// honest sender copies instead.
constexpr size_t kMaxPassedDevices = 64;
// The time after which an unused allocation is taken back. Reason: this side
// does not learn when the program frees an allocation, and the device may keep
// the memory until the peer has closed the allocation. Opening an allocation
// again takes a millisecond.
constexpr absl::Duration kDeviceIdleTime = absl::Seconds(5);
// The number of refusals after which this side lends no more device memory,
// because the peer will probably refuse other allocations too. Each refusal
// makes the peer read a message twice.
constexpr int kMaxDeclinedDevices = 8;
// The minimum time for which an allocation stays lent, even if another
// allocation needs its slot. The other allocation's bytes are copied meanwhile.
// Without this minimum, 65 allocations sent in turn would each be opened again
// for each message, which costs more than copying.
constexpr absl::Duration kDeviceKeepTime = absl::Seconds(1);

// Passes each allocation to the peer once per connection, by its handle. Takes
// an allocation back if no range of it is lent and one of these holds:
// - The allocation is the least recently used, and another allocation needs its
//   slot.
// - The allocation was unused for kDeviceIdleTime.
// - This process no longer uses the allocation.
// Keeps SharedAllocation::memory alive until the peer has closed the allocation
// or is gone, or until this side stops waiting for the peer. Thread-safe.
class DeviceLender {
 public:
  // The peer's address of a range. While a reference exists, the allocation is
  // not taken back.
  struct Lent {
    uint32_t segment_id = 0;
    uint64_t offset = 0;
    std::shared_ptr<const void> share;
  };

  // Passes allocations of `devices` over `socket`; both must outlive this
  // object. `devices` is null if the peer opens no device memory.
  DeviceLender(int socket, const memory::DeviceAccess* devices);

  // Returns where the peer finds `piece`, which is on a device. Returns nothing
  // if the piece must be copied. May call the driver.
  absl::optional<Lent> Lend(const memory::Bytes& piece);
  // Returns true if Lend() may succeed. Safe without any lock.
  bool lends() const { return lends_.load(std::memory_order_relaxed); }
  // Returns the number of allocations that the peer may have open.
  size_t count() const { return count_.load(std::memory_order_relaxed); }

  // Called when the peer cannot open the allocation. Stops lending the
  // allocation until it has been taken back. Stops all lending after
  // kMaxDeclinedDevices calls. Returns INVALID_ARGUMENT if the allocation was
  // never passed.
  absl::Status Decline(uint32_t segment_id);
  // Called when the peer has closed the allocation. Returns INVALID_ARGUMENT if
  // the allocation was not open, or if the peer has reported the same before.
  absl::Status OnClosed(uint32_t segment_id);
  // Stops lending. Call when this side stops receiving, because it would not
  // learn of the peer's refusals.
  void StopUnheard();
  // Forgets all allocations, because the peer is gone.
  void End();
  // Takes back allocations of which no range is lent, if they are idle for
  // kDeviceIdleTime, or if this process no longer uses them. `now` is
  // base::SteadyNow().
  void TakeBackIdle(absl::Time now);
  // Takes back all allocations of which no range is lent, and stops lending.
  // Frees an allocation once the peer has closed it, or after `patience` calls
  // of this function.
  void TakeBackUnused(int patience);

  // Returns "devices' memory in place", or the reason why pieces are copied.
  std::string Describe() const;

 private:
  using Memory = std::shared_ptr<const void>;

  // An allocation that was passed to the peer.
  struct Passed {
    uint64_t size = 0;
    // The number of the allocation at the peer. Each lent range of the
    // allocation holds a reference.
    std::shared_ptr<const uint32_t> segment_id;
    Memory memory;
    std::weak_ptr<const void> use;
    absl::Time last_used;
    bool is_declined = false;

    bool is_lent() const { return segment_id.use_count() > 1; }
    // Returns true if this process no longer uses the allocation. The memory is
    // then freed as soon as the peer has closed the allocation.
    bool is_dropped() const { return memory != nullptr && use.expired(); }
  };
  using PassedById = std::map<uint64_t, Passed>;
  // An allocation that was taken back. Kept until the peer has closed it and
  // has returned all its loans. Freeing the memory may wait for the device, so
  // the thread that takes back returned loans must not release the last
  // reference.
  struct Closing {
    uint64_t size = 0;
    Memory memory;
    std::shared_ptr<const uint32_t> segment_id;
    bool is_closed = false;
    int looks = 0;  // checks by TakeBackUnused()

    bool is_lent() const { return segment_id.use_count() > 1; }
  };

  // Returns the allocation of `piece`, by a call of the driver.
  absl::StatusOr<memory::SharedAllocation> Share(
      const memory::Bytes& piece) const;
  // Passes the allocation, unless the peer has it.
  absl::Status PassLocked(const memory::SharedAllocation& shared)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Takes allocations back until there is room for one of `size` bytes.
  absl::Status MakeRoomLocked(uint64_t size) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns the least recently used allocation of which no range is lent.
  // Returns the end if there is none.
  PassedById::iterator FindOldestLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void TakeBackLocked(PassedById::iterator passed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Sends the messages of to_take_back_, as far as the socket has room. Frees
  // allocations that the peer has closed, or has not closed in more than
  // `patience` calls.
  void FreeClosedLocked(int patience) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SendTakeBacksLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CountLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void StopLocked(absl::string_view reason) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const int socket_;
  const memory::DeviceAccess* const devices_;
  std::atomic<bool> lends_;
  std::atomic<size_t> count_{0};

  mutable base::Mutex mu_;
  // The passed allocations, by SharedAllocation::id.
  PassedById passed_ ABSL_GUARDED_BY(mu_);
  uint64_t passed_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  // The allocations that the peer must still close, by their number.
  std::map<uint32_t, Closing> closing_ ABSL_GUARDED_BY(mu_);
  uint64_t closing_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  uint32_t next_segment_id_ ABSL_GUARDED_BY(mu_);
  int declined_ ABSL_GUARDED_BY(mu_) = 0;  // total
  // The numbers of those allocations in closing_ that must still be reported to
  // the peer.
  std::vector<uint32_t> to_take_back_ ABSL_GUARDED_BY(mu_);
  // The reason why the last piece was copied. Empty if it was not copied.
  std::string reason_ ABSL_GUARDED_BY(mu_);
};

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_DEVICE_LENDER_H_
