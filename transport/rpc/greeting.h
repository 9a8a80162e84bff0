// The greeting of two sides on a fresh socket, before the session begins. Total
// functions; docs/rpc.md shows the bytes.

#ifndef PENSTOCK_TRANSPORT_RPC_GREETING_H_
#define PENSTOCK_TRANSPORT_RPC_GREETING_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace penstock {
namespace rpc {

constexpr size_t kMaxTokenBytes = 64;
constexpr size_t kMaxRefusalBytes = 512;

// The client's: which versions of the protocol it speaks, and the secret that
// shows that it was told of this server.
struct Greeting {
  uint8_t oldest = 0;
  uint8_t newest = 0;
  std::string token;
};

// The server's.
struct Answer {
  uint8_t version = 0;  // 0: refused
  std::string refusal;  // why
};

std::string EncodeGreeting(const Greeting& greeting);
std::string EncodeAnswer(const Answer& answer);

// Both take the beginning of `*bytes` off if all of it has come, return nothing
// if more is to come, and INVALID_ARGUMENT as soon as it can be no greeting.
absl::StatusOr<absl::optional<Greeting>> TakeGreeting(absl::string_view* bytes);
absl::StatusOr<absl::optional<Answer>> TakeAnswer(absl::string_view* bytes);

// Compares in a time that does not tell where they differ.
bool IsSameToken(absl::string_view one, absl::string_view other);

}  // namespace rpc
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_RPC_GREETING_H_
