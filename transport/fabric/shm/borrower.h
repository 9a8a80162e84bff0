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
#include "transport/fabric/shm/doorbell.h"
#include "transport/fabric/shm/lent_segment.h"
#include "transport/fabric/shm/setup_message.h"
#include "transport/memory/device_access.h"

namespace penstock {
namespace fabric {
namespace shm {

// Limits the number of segments that a peer may lend over one connection at a
// time. kMaxPeerBytes limits their bytes.
constexpr size_t kMaxPeerSegments = 64;

// The memory that the peer lends over one connection. Maps the peer's segments,
// and opens its device allocations. Keeps each until the peer takes it back or
// this object ends; a range in use is kept longer. Tells the peer when an
// allocation that was taken back is closed. Thread-safe.
class Borrower {
 public:
  // The bytes of a part, and a reference that keeps the bytes valid. Take a
  // Loan before a long read of a part in a segment.
  struct Borrowed {
    absl::Span<const uint8_t> bytes;
    memory::DeviceAccess* device = nullptr;  // null: the CPU
    std::shared_ptr<const void> owner;       // of device memory
    std::shared_ptr<LentSegment> segment;    // of other memory
  };

  // Receives segments over `socket`, and writes returned loans to `own`. Opens
  // allocations with `devices`, or none if `devices` is null. Tells `lender`
  // which allocations the peer refuses. Passes the peer's doorbell to
  // `doorbell`, or accepts none if null. All arguments must outlive this
  // object.
  Borrower(int socket, ControlPage* own, memory::DeviceAccess* devices,
           DeviceLender* lender, Doorbell* doorbell)
      : socket_(socket),
        own_(own),
        devices_(devices),
        lender_(lender),
        doorbell_(doorbell) {}
  ~Borrower() { LetGo(); }
  Borrower(const Borrower&) = delete;
  Borrower& operator=(const Borrower&) = delete;

  // Sets the object that tells the peer of closed allocations, and whose
  // OnClosed() is called. Call Connect() before the other functions.
  void Connect(std::weak_ptr<BorrowedDevice::Peer> peer);

  // Returns the bytes of `part`. If the part's segment or allocation is
  // unknown, first receives messages from the socket. Returns an error if the
  // peer lends only some of the part, if the peer has not allocated the part,
  // or if the device memory cannot be opened. In the last case, also tells the
  // peer. The first part of an allocation may take milliseconds.
  absl::StatusOr<Borrowed> Find(const RemotePart& part);

  enum class TakenIn {
    kSome,   // everything, or a full budget: others have their turn
    kLater,  // this process lacks a resource now, or has too much to unmap
    kNever,  // the peer has sent what no honest peer sends
  };
  // Receives a bounded number of messages from the socket. The result tells the
  // caller when to call again. Find() reports errors.
  TakenIn TakeIn();

  // Forgets all segments. Call when the peer is dead and Find() is not called
  // any more. Ranges with a loan stay readable; other ranges may be unmapped.
  void LetGo();

  // Ends the loan with this key, because this side no longer reads the loan's
  // memory. Makes no system call.
  void GiveBack(uint64_t key);

  // Closes all allocations that are not in use, and each allocation that the
  // peer passes later. Call when Find() is not called any more.
  void CloseDevices();
  // Handles the end of an allocation, and tells the peer as Answer() does.
  bool OnClosed(uint32_t id);
  // Tells the peer which allocations have been closed. Returns false if the
  // socket has no room; the caller then tries again later.
  bool Answer();
  // Returns why an allocation could not be opened. Empty if all could be
  // opened.
  std::string WhyDeclined() const;

 private:
  // An allocation, kept until the peer has been told that it is closed.
  struct DeviceAllocation {
    uint64_t size = 0;
    // The open allocation. Null if it must not be used any more.
    std::shared_ptr<BorrowedDevice> device;
    bool is_taken_back = false;
    bool is_closed = false;
    bool is_declined = false;  // the peer was told
  };

  // Receives messages from the socket, until the wanted segment arrives.
  absl::Status ReceiveLocked(uint32_t wanted)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Receives one message. Returns NOT_FOUND if there is none, and
  // RESOURCE_EXHAUSTED if this process lacks a resource for now. Any other
  // error is the peer's fault.
  absl::Status ReceiveOneLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status TakeOneLocked(ReceivedSetup received)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status AddLocked(uint32_t id, uint64_t size, progress::ForeignFd fd)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status AddDeviceLocked(const SetupMessage& message)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Forgets the segment or allocation `id`. Returns false if `id` is unknown.
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
  Doorbell* const doorbell_;

  // The thread that receives from the socket also holds this lock. Acquired
  // before the DeviceLender's lock.
  mutable base::Mutex mu_;
  std::map<uint32_t, std::shared_ptr<LentSegment>> segments_
      ABSL_GUARDED_BY(mu_);
  uint64_t bytes_ ABSL_GUARDED_BY(mu_) = 0;
  std::weak_ptr<BorrowedDevice::Peer> peer_ ABSL_GUARDED_BY(mu_);
  std::map<uint32_t, DeviceAllocation> device_allocations_ ABSL_GUARDED_BY(mu_);
  uint64_t device_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  // The number of the last allocation. Later allocations have higher numbers.
  uint32_t last_device_ ABSL_GUARDED_BY(mu_) = 0;
  bool devices_closed_ ABSL_GUARDED_BY(mu_) = false;
  std::string why_declined_ ABSL_GUARDED_BY(mu_);
  // The error of the peer's first message that violated the protocol for device
  // memory. After such a message, this side receives no further messages.
  absl::Status violation_ ABSL_GUARDED_BY(mu_);
  // The reason why the last received message was unusable.
  absl::Status refused_ ABSL_GUARDED_BY(mu_);

  base::Mutex release_mu_;  // held by the thread that writes own_'s releases
};

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_BORROWER_H_
