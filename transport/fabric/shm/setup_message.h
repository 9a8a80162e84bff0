// What goes over the UNIX socket beside a connection: the two halves of the
// set-up, then arena segments, each with a descriptor; and which of these are
// taken back.

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

// Bytes, little-endian: u32 "PSHM", u16 version, u8 kind, u8 token length,
// u64 size, u32 segment id or "copies" (0, 1), token.
struct SetupMessage {
  enum class Kind : uint8_t {
    kHello = 1,     // connecting side: its control segment, and the token
    kWelcome = 2,   // listening side: its control segment
    kSegment = 3,   // either: an arena segment
    kTakeBack = 4,  // either, without a descriptor: a segment that it lends no
                    // more, and of which no loan is out
  };
  Kind kind = Kind::kHello;
  uint64_t size = 0;  // of the ring, or of the arena segment; kTakeBack: 0
  uint32_t segment_id = 0;  // kSegment, kTakeBack
  // kHello, kWelcome: this side uses nothing of the peer's in place. Where one
  // side says so, it holds for both.
  bool copies = false;
  std::string token;  // kHello
};

// Needs token.size() <= kMaxTokenBytes.
std::string EncodeSetup(const SetupMessage& message);
// INVALID_ARGUMENT for anything but exactly one message; FAILED_PRECONDITION
// for one of another version.
absl::StatusOr<SetupMessage> DecodeSetup(absl::string_view bytes);

struct ReceivedSetup {
  SetupMessage message;
  // Of shared memory, anonymous or of a file system in memory: what is asked
  // about it is answered without waiting for anybody.
  progress::ForeignFd fd;
};

// Sends `message` with a duplicate of `fd`, or none if negative, without
// waiting: UNAVAILABLE where the socket is full, and nothing was sent.
absl::Status SendSetup(int socket, const SetupMessage& message, int fd);

// Receives one, without waiting: NOT_FOUND if there is none, UNAVAILABLE if the
// peer has hung up, RESOURCE_EXHAUSTED if no descriptor is left for it. A
// message without its one descriptor, of shared memory, is an error, and so is
// a kTakeBack with any. Where there is an error the message stays in the
// socket, and what it brings is closed with that.
absl::StatusOr<ReceivedSetup> ReceiveSetup(int socket);

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_SETUP_MESSAGE_H_
