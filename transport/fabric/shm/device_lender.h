// Names allocations of devices' memory to a peer.

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

// Caps the allocations that a side passes over one connection at a time.
// kMaxPassedDeviceBytes caps their bytes. More is a peer's nonsense, or is
// copied.
constexpr size_t kMaxPassedDevices = 64;
// What nothing has been lent of for so long is taken back: nobody tells when an
// allocation is freed, and a device may keep its memory until the peer has
// closed it too. To open it again takes a millisecond.
constexpr absl::Duration kDeviceIdleTime = absl::Seconds(5);
// A peer that could not open so many allocations will hardly open others: each
// costs it a message that it reads twice.
constexpr int kMaxDeclinedDevices = 8;
// What was lent so recently is not taken back for another one, which is copied
// then. Otherwise each of 65 that are sent in turn would be opened anew each
// time, and cost more than a copy.
constexpr absl::Duration kDeviceKeepTime = absl::Seconds(1);

// Passes each allocation once over one connection, by its handle. Takes one
// back that nothing is lent of: the one that was used least recently, for
// another one if there would be too many; each after kDeviceIdleTime; and one
// that this process uses no more. Keeps SharedAllocation::memory until the peer
// has closed it, or is gone, or is given up on. Thread-safe.
class DeviceLender {
 public:
  // A range that the peer reaches. The allocation is not taken back while there
  // is a share.
  struct Lent {
    uint32_t segment_id = 0;
    uint64_t offset = 0;
    std::shared_ptr<const void> share;
  };

  // Passes those of `devices` over `socket`; both must outlive this. Null: the
  // peer opens none.
  DeviceLender(int socket, const memory::DeviceAccess* devices);

  // Returns where the peer finds `piece`, which lies on a device. Returns none
  // if it is to be copied, for whatever reason. May take a driver's call.
  absl::optional<Lent> Lend(const memory::Bytes& piece);
  // Whether Lend() may succeed. Safe without any lock.
  bool lends() const { return lends_.load(std::memory_order_relaxed); }
  // Returns how many the peer may have open.
  size_t count() const { return count_.load(std::memory_order_relaxed); }

  // The peer cannot open that allocation: lends nothing of it until it has been
  // taken back, and nothing at all after kMaxDeclinedDevices. Returns
  // INVALID_ARGUMENT if it was never passed.
  absl::Status Decline(uint32_t segment_id);
  // The peer has that allocation open no more. Returns INVALID_ARGUMENT if it
  // had not, or has said so before.
  absl::Status OnClosed(uint32_t segment_id);
  // Lends nothing from now on, since nobody would hear a refusal.
  void StopUnheard();
  // Forgets all, since the peer is gone.
  void End();
  // Takes back what nothing is lent of, and has not been for kDeviceIdleTime or
  // is used by nobody in this process. `now` is of base::SteadyNow().
  void TakeBackIdle(absl::Time now);
  // Takes back all that nothing is lent of, and lends nothing any more. Keeps
  // nothing any longer that the peer has not closed for so many calls.
  void TakeBackUnused(int patience);

  // Returns "devices' memory in place", or why it is copied.
  std::string Describe() const;

 private:
  using Memory = std::shared_ptr<const void>;

  // An allocation, as the peer knows it.
  struct Passed {
    uint64_t size = 0;
    // Others have shares while something of it is lent.
    std::shared_ptr<const uint32_t> segment_id;
    Memory memory;
    std::weak_ptr<const void> use;
    absl::Time last_used;
    bool is_declined = false;

    bool is_lent() const { return segment_id.use_count() > 1; }
    // Whether it waits for nothing but the peer to be freed.
    bool is_dropped() const { return memory != nullptr && use.expired(); }
  };
  using PassedById = std::map<uint64_t, Passed>;
  // An allocation that was taken back. It is kept until the peer has closed it
  // and all its loans are back. Whoever takes loans back must not be the last
  // to have the memory: to free it may wait for the device.
  struct Closing {
    uint64_t size = 0;
    Memory memory;
    std::shared_ptr<const uint32_t> segment_id;
    bool is_closed = false;
    int looks = 0;  // of TakeBackUnused()

    bool is_lent() const { return segment_id.use_count() > 1; }
  };

  // Returns the allocation of `piece`, by a driver's call.
  absl::StatusOr<memory::SharedAllocation> Share(
      const memory::Bytes& piece) const;
  // Passes the allocation unless the peer has it.
  absl::Status PassLocked(const memory::SharedAllocation& shared)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Takes back until there is room for an allocation of `size` bytes.
  absl::Status MakeRoomLocked(uint64_t size) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns what nothing is lent of and was used least recently, or the end.
  PassedById::iterator FindOldestLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void TakeBackLocked(PassedById::iterator passed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Sends what is in to_take_back_, as far as the socket has room.
  // Frees what the peer has closed, or has not for more than so many looks.
  void FreeClosedLocked(int patience) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SendTakeBacksLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CountLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void StopLocked(absl::string_view reason) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const int socket_;
  const memory::DeviceAccess* const devices_;
  std::atomic<bool> lends_;
  std::atomic<size_t> count_{0};

  mutable base::Mutex mu_;
  // By SharedAllocation::id.
  PassedById passed_ ABSL_GUARDED_BY(mu_);
  uint64_t passed_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  // By the segment's number.
  std::map<uint32_t, Closing> closing_ ABSL_GUARDED_BY(mu_);
  uint64_t closing_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  uint32_t next_segment_id_ ABSL_GUARDED_BY(mu_);
  int declined_ ABSL_GUARDED_BY(mu_) = 0;  // in all
  // Of closing_, of which the peer is still to be told.
  std::vector<uint32_t> to_take_back_ ABSL_GUARDED_BY(mu_);
  // Why the last piece was copied; empty: it was not.
  std::string reason_ ABSL_GUARDED_BY(mu_);
};

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_DEVICE_LENDER_H_
