// The greeting of both sides on a new socket, before the session begins. All
// functions accept any input. docs/rpc.md shows the bytes.

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

// The client's greeting: the versions of the protocol that the client speaks,
// and the server's secret token.
struct Greeting {
  uint8_t oldest = 0;
  uint8_t newest = 0;
  std::string token;
};

// The server's answer.
struct Answer {
  uint8_t version = 0;  // 0 means refused
  std::string refusal;  // the reason
};

std::string EncodeGreeting(const Greeting& greeting);
std::string EncodeAnswer(const Answer& answer);

// Each function removes a greeting or an answer from the beginning of `*bytes`
// and returns it. Returns nothing if more bytes are needed, and
// INVALID_ARGUMENT as soon as the bytes are malformed.
absl::StatusOr<absl::optional<Greeting>> TakeGreeting(absl::string_view* bytes);
absl::StatusOr<absl::optional<Answer>> TakeAnswer(absl::string_view* bytes);

// Compares two tokens. The time of the call does not depend on the position of
// a difference.
bool IsSameToken(absl::string_view one, absl::string_view other);

}  // namespace rpc
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_RPC_GREETING_H_
