// The messages on the UNIX socket of a connection: the two halves of the
// set-up, then arena segments that are lent and taken back.

#ifndef PENSTOCK_TRANSPORT_FABRIC_SHM_SETUP_MESSAGE_H_
#define PENSTOCK_TRANSPORT_FABRIC_SHM_SETUP_MESSAGE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "transport/progress/foreign_fd.h"

namespace penstock {
namespace fabric {
namespace shm {

constexpr size_t kMaxTokenBytes = 64;
constexpr size_t kMaxSetupBytes = 20 + kMaxTokenBytes;

// Returns INVALID_ARGUMENT unless `token` has 1 to kMaxTokenBytes bytes.
absl::Status CheckToken(absl::string_view token);

// On the socket, little-endian: u32 "PSHM", u16 version, u8 kind, u8 token
// length, u64 size, u32 segment id or "copies" (0, 1), token.
struct SetupMessage {
  enum class Kind : uint8_t {
    // From the connecting side, with its control segment.
    kHello = 1,
    // From the listening side, with its control segment.
    kWelcome = 2,
    // From either side, with a segment of its arena, of which it lends parts.
    kSegment = 3,
    // From either side, without a descriptor: names a segment of which it lends
    // nothing any more, and no loan is out.
    kTakeBack = 4,
  };
  Kind kind = Kind::kHello;
  uint64_t size = 0;  // of the ring or of the arena segment; 0 in kTakeBack
  uint32_t segment_id = 0;  // kSegment, kTakeBack
  // kHello, kWelcome: the sender copies what the peer lends, and uses nothing
  // in place. If one side says so, both copy.
  bool copies = false;
  std::string token;  // kHello
};

// Returns the bytes of `message`. Needs token.size() <= kMaxTokenBytes.
std::string EncodeSetup(const SetupMessage& message);
// Returns INVALID_ARGUMENT for anything but exactly one message, and
// FAILED_PRECONDITION for one of another version.
absl::StatusOr<SetupMessage> DecodeSetup(absl::string_view bytes);

struct ReceivedSetup {
  SetupMessage message;
  // Shared memory: anonymous, or of a file system in memory. So asking the
  // kernel about it waits for nobody. None in kTakeBack.
  progress::ForeignFd fd;
};

// Sends `message` with a duplicate of `fd`, or with none if it is negative.
// Does not wait: returns UNAVAILABLE, and sends nothing, if the socket is full.
absl::Status SendSetup(int socket, const SetupMessage& message, int fd);

// Receives a message, without waiting. Returns NOT_FOUND if there is none,
// UNAVAILABLE if the peer has hung up, and RESOURCE_EXHAUSTED if this process
// has no descriptor left. Returns another error for a message that has not
// exactly one descriptor, of shared memory, and for a kTakeBack that has any.
// After an error the message is still in the socket, and its descriptors are
// closed with the socket.
absl::StatusOr<ReceivedSetup> ReceiveSetup(int socket);

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_SETUP_MESSAGE_H_
