// Reads memory that a peer lends.

#ifndef PENSTOCK_TRANSPORT_FABRIC_SHM_BORROWER_H_
#define PENSTOCK_TRANSPORT_FABRIC_SHM_BORROWER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "transport/base/mutex.h"
#include "transport/fabric/fabric.h"
#include "transport/fabric/shm/borrowed_device.h"
#include "transport/fabric/shm/control.h"
#include "transport/fabric/shm/device_lender.h"
#include "transport/fabric/shm/lent_segment.h"
#include "transport/fabric/shm/setup_message.h"
#include "transport/memory/device_access.h"

namespace penstock {
namespace fabric {
namespace shm {

// Caps the segments that a peer may lend over one connection at a time.
// kMaxPeerBytes caps their bytes.
constexpr size_t kMaxPeerSegments = 64;

// Maps the segments and opens the allocations that the peer passes over one
// connection. Keeps one until the peer takes it back or this ends, and for
// longer while a range of it is in use. Answers once an allocation that was
// taken back is closed. Thread-safe.
class Borrower {
 public:
  // The bytes of a part, what reaches them, and the share that keeps them: of a
  // segment's, begin a Loan before they are read for long.
  struct Borrowed {
    absl::Span<const uint8_t> bytes;
    memory::DeviceAccess* device = nullptr;  // null: the CPU
    std::shared_ptr<const void> owner;       // of a device's
    std::shared_ptr<LentSegment> segment;    // of others
  };

  // Receives segments over `socket`, and gives loans back in `own`. Opens
  // allocations with `devices`; null: opens none. Tells `lender` what the peer
  // declines. All must outlive this.
  Borrower(int socket, ControlPage* own, memory::DeviceAccess* devices,
           DeviceLender* lender)
      : socket_(socket), own_(own), devices_(devices), lender_(lender) {}
  ~Borrower() { LetGo(); }
  Borrower(const Borrower&) = delete;
  Borrower& operator=(const Borrower&) = delete;

  // Says who is told what is closed, and passes it on to OnClosed(). Call it
  // before the others.
  void Connect(std::weak_ptr<BorrowedDevice::Connection> connection);

  // Returns where the bytes of `part` lie. Takes in what waits in the socket,
  // if the part's segment or allocation is not known yet. Returns an error if
  // the peer does not lend all of the part, or has not allocated it, or if its
  // device's memory cannot be opened, which the peer is told. May take
  // milliseconds at the first part of an allocation.
  absl::StatusOr<Borrowed> Find(const RemotePart& part);

  enum class TakenIn {
    kSome,   // all, or so much that others have their turn
    kLater,  // this process lacks something now, or has too much to unmap
    kNever,  // the peer has sent what no honest one does
  };
  // Takes in some of what waits in the socket: a bounded amount. Leave the rest
  // to a later call if it says so, or to Find(), which reports what is wrong.
  TakenIn TakeIn();

  // Forgets all segments, since the peer is dead and Find() is not called any
  // more. Loans may be read on, but need not keep what is around them.
  void LetGo();

  // Ends the loan with this key: this side reads it no more. Makes no system
  // call.
  void GiveBack(uint64_t key);

  // Lets go of all allocations of which nothing is in use, and of later ones,
  // since Find() is not called any more.
  void CloseDevices();
  // The allocation is closed, which the peer is told as Answer() does.
  bool OnClosed(uint32_t id);
  // Tells the peer what has been closed. Returns false if the socket has no
  // room: call it again.
  bool Answer();
  // Returns why an allocation could not be opened; empty: all could.
  std::string WhyDeclined() const;

 private:
  // An allocation, until the peer has been told that it is closed.
  struct DeviceAllocation {
    uint64_t size = 0;
    // Null: it may not be used any more.
    std::shared_ptr<BorrowedDevice> device;
    bool is_taken_back = false;
    bool is_closed = false;
    bool is_declined = false;  // the peer was told
  };

  // Takes in what waits in the socket, up to the wanted segment.
  absl::Status ReceiveLocked(uint32_t wanted)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Takes one message in. Returns NOT_FOUND if there is none, and
  // RESOURCE_EXHAUSTED if this process lacks something that it may have later.
  // Any other error is the peer's.
  absl::Status ReceiveOneLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status TakeOneLocked(ReceivedSetup received)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status AddLocked(uint32_t id, uint64_t size, progress::ForeignFd fd)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status AddDeviceLocked(const SetupMessage& message)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Forgets a segment or an allocation. Returns false if there is none.
  bool TakeBackLocked(uint32_t id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool HasLocked(uint32_t id) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const auto found = device_allocations_.find(id);
    if (found != device_allocations_.end()) {
      return found->second.device != nullptr;
    }
    return segments_.count(id) > 0;
  }
  absl::StatusOr<Borrowed> FindOnDevice(
      const RemotePart& part, const std::shared_ptr<BorrowedDevice>& device);
  bool TakeDeviceBackLocked(uint32_t id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool AnswerLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Tells the peer, once, that an allocation cannot be opened.
  void Decline(uint32_t id, const absl::Status& why);

  const int socket_;
  ControlPage* const own_;
  memory::DeviceAccess* const devices_;
  DeviceLender* const lender_;

  // Held too by the one who receives from the socket. Taken before the
  // DeviceLender's.
  mutable base::Mutex mu_;
  std::map<uint32_t, std::shared_ptr<LentSegment>> segments_
      ABSL_GUARDED_BY(mu_);
  uint64_t bytes_ ABSL_GUARDED_BY(mu_) = 0;
  std::weak_ptr<BorrowedDevice::Connection> connection_ ABSL_GUARDED_BY(mu_);
  std::map<uint32_t, DeviceAllocation> device_allocations_ ABSL_GUARDED_BY(mu_);
  uint64_t device_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  uint32_t last_device_ ABSL_GUARDED_BY(mu_) = 0;  // their numbers only grow
  bool devices_closed_ ABSL_GUARDED_BY(mu_) = false;
  std::string why_declined_ ABSL_GUARDED_BY(mu_);
  // What the peer said of devices' memory that none says; after that nothing
  // is taken in any more.
  absl::Status violation_ ABSL_GUARDED_BY(mu_);
  // Why the last message that was received was of no use.
  absl::Status refused_ ABSL_GUARDED_BY(mu_);

  base::Mutex release_mu_;  // held by the one who writes own_'s releases
};

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_BORROWER_H_
