// The messages on the UNIX socket of a connection. First come the two halves of
// the set-up. Later messages lend and take back arena segments and allocations
// of device memory.

#ifndef PENSTOCK_TRANSPORT_FABRIC_SHM_SETUP_MESSAGE_H_
#define PENSTOCK_TRANSPORT_FABRIC_SHM_SETUP_MESSAGE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "transport/memory/device_access.h"
#include "transport/progress/foreign_fd.h"

namespace penstock {
namespace fabric {
namespace shm {

constexpr size_t kMaxTokenBytes = 64;
constexpr size_t kSetupHeaderBytes = 20;
constexpr size_t kMaxSetupBytes =
    kSetupHeaderBytes + memory::kMaxDeviceHandleBytes;
static_assert(kMaxTokenBytes <= memory::kMaxDeviceHandleBytes,
              "the longest message has a handle");

// Limit the sizes in messages, which a receiver adds up: the bytes of segments,
// and the bytes of device allocations, that a side lends over one connection at
// a time. An honest peer's arena has about ten segments, by default of 1 GiB in
// total. Device memory takes only addresses at the peer, so its limit is
// higher.
constexpr uint64_t kMaxPeerBytes = uint64_t{4} << 30;
constexpr uint64_t kMaxPassedDeviceBytes = uint64_t{1} << 40;

// Returns INVALID_ARGUMENT unless `token` has 1 to kMaxTokenBytes bytes.
absl::Status CheckToken(absl::string_view token);

// A message. The encoding, little-endian: u32 "PSHM", u16 version, u8 kind, u8
// length of the token or handle, u64 size, u32 segment id (or 1 if the sender
// copies), and the token or handle.
struct SetupMessage {
  enum class Kind : uint8_t {
    // Sent by the connecting side, with its control segment.
    kHello = 1,
    // Sent by the listening side, with its control segment.
    kWelcome = 2,
    // Sent by either side, with a segment of its arena. The side lends parts of
    // this segment.
    kSegment = 3,
    // Sent by either side, without a descriptor. Takes back a segment or an
    // allocation of which no range is lent any more.
    kTakeBack = 4,
    // Sent by either side, without a descriptor, for a device allocation. The
    // side lends parts of this allocation. Sent only to a side with
    // kOpensDevices.
    kDevice = 5,
    // Answers kDevice, without a descriptor, if the allocation cannot be
    // opened. The sender of kDeclined cannot read the allocation.
    kDeclined = 6,
    // Reports, without a descriptor, that the sender has closed a device
    // allocation and will not read it any more. Sent once for each allocation,
    // as the answer to kTakeBack or earlier.
    kClosed = 7,
    // Sent by either side, once, with the eventfd on which the sender sleeps.
    // Sent only to a side with kTakesDoorbell.
    kDoorbell = 8,
  };
  Kind kind = Kind::kHello;
  // In kHello and kWelcome, the size of the ring: IsRingSize(). In kSegment,
  // the size of the segment: 1 to kMaxPeerBytes. In kDevice, the size of the
  // allocation: memory::kMinDeviceBytes to kMaxPassedDeviceBytes. 0 in all
  // other kinds.
  uint64_t size = 0;
  // The number of the segment or allocation; see region_key.h. Unused in kHello
  // and kWelcome.
  uint32_t segment_id = 0;
  // In kHello and kWelcome, true if the sender wants copies instead of using
  // lent memory. If one side copies, both do.
  bool copies = false;
  std::string token;   // kHello
  std::string handle;  // kDevice: the argument of memory::DeviceAccess::Open()
};

// Returns the bytes of `message`. Requires token.size() <= kMaxTokenBytes, and
// handle.size() <= memory::kMaxDeviceHandleBytes.
std::string EncodeSetup(const SetupMessage& message);
// Returns INVALID_ARGUMENT unless `bytes` are exactly one message with a size
// within its kind's limits. Returns FAILED_PRECONDITION for another version.
absl::StatusOr<SetupMessage> DecodeSetup(absl::string_view bytes);

// Returns true if a message of that kind has a descriptor.
bool HasDescriptor(SetupMessage::Kind kind);

// Returns true if ReceiveSetup() can recognise a peer's doorbell, for which it
// reads this process's /proc. An unrecognised doorbell would stay in the
// socket, and delay all later messages.
bool RecognizesEventFds();

struct ReceivedSetup {
  SetupMessage message;
  // A descriptor of shared memory: anonymous memory, or a file in a memory file
  // system. In kDoorbell, an eventfd. System calls on such descriptors never
  // block. Set only if HasDescriptor().
  progress::ForeignFd fd;
};

// Sends `message` with a duplicate of `fd`, or without a descriptor if `fd` is
// negative. Does not block: if the socket is full, sends nothing and returns
// RESOURCE_EXHAUSTED. Returns UNAVAILABLE if the peer has hung up.
absl::Status SendSetup(int socket, const SetupMessage& message, int fd);

// Receives a message, without blocking. Returns NOT_FOUND if there is none,
// UNAVAILABLE if the peer has hung up, and RESOURCE_EXHAUSTED if this process
// has no descriptor left. Returns another error if the message has other
// descriptors than its kind requires: one of shared memory, one of an eventfd,
// or none. After an error the message stays in the socket. Closing the socket
// closes the message's descriptors.
absl::StatusOr<ReceivedSetup> ReceiveSetup(int socket);

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_SETUP_MESSAGE_H_
