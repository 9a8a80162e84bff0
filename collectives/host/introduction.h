// The messages with which ranks of one host introduce themselves.

#ifndef PENSTOCK_COLLECTIVES_HOST_INTRODUCTION_H_
#define PENSTOCK_COLLECTIVES_HOST_INTRODUCTION_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "collectives/host/control.h"
#include "transport/base/token.h"
#include "transport/progress/foreign_fd.h"

namespace penstock::collectives {

// Limits the text of a refusal.
inline constexpr size_t kMaxRefusalBytes = 512;

// The format of a message on a packet socket, little-endian: u32 "PSCG", u16
// version, u16 kind, u32 rank, u32 ranks, u64 bytes of a slot, u64 bytes of the
// pool, the token, and, in a refusal, its text.
struct Introduction {
  static constexpr uint16_t kVersion = 2;
  enum class Kind : uint16_t {
    // Sent by a rank that joins, with the descriptors of its memory and its
    // pipe.
    kHello = 1,
    // Sent by rank 0, once for each other rank, with that rank's descriptors.
    kMember = 2,
    // Sent by rank 0 instead of members, without descriptors.
    kRefusal = 3,
  };
  Kind kind = Kind::kHello;
  uint32_t rank = 0;
  uint32_t ranks = 0;
  SegmentSizes sizes;
  std::string token = std::string(base::kTokenBytes, '\0');
  std::string text;  // of a refusal
};

std::string Encode(const Introduction& introduction);
// Returns INVALID_ARGUMENT unless `bytes` are exactly one message, and
// FAILED_PRECONDITION for a message of another version.
absl::StatusOr<Introduction> DecodeIntroduction(absl::string_view bytes);

struct Received {
  Introduction introduction;
  progress::ForeignFd memory;
  progress::ForeignFd life;
};

// Sends a message. Sends the descriptors with the message unless they are
// negative. Waits until `deadline` for room.
absl::Status Send(int socket, const Introduction& introduction, int memory_fd,
                  int life_fd, absl::Time deadline);

// Receives a message that has arrived. Returns INVALID_ARGUMENT if the number
// of descriptors, two or none, does not match the kind of the message. Returns
// UNAVAILABLE if the peer has hung up.
absl::StatusOr<Received> Receive(int socket);

// Waits until `deadline` for a message, and receives it.
absl::StatusOr<Received> ReceiveUntil(int socket, absl::Time deadline);

// Returns the time until `deadline` as a timeout for poll(): 0 to 1,000 ms.
int PollMillis(absl::Time deadline);

}  // namespace penstock::collectives

#endif  // PENSTOCK_COLLECTIVES_HOST_INTRODUCTION_H_
