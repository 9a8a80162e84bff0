// The first bytes of a stripe, by which the client shows to which session the
// socket belongs. docs/protocol.md has the bytes.

#ifndef PENSTOCK_TRANSPORT_FABRIC_TCP_STRIPES_GREETING_H_
#define PENSTOCK_TRANSPORT_FABRIC_TCP_STRIPES_GREETING_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "transport/base/unique_fd.h"

namespace penstock {
namespace fabric {
namespace stripes {

// Limits the sockets of one session.
constexpr int kMostStripes = 16;
constexpr size_t kGreetingBytes = 26;

struct Greeting {
  uint8_t index = 0;  // of this stripe, below `count`
  uint8_t count = 0;  // of all stripes, 2 to kMostStripes
  std::string token;  // of the session, base::kTokenBytes bytes
};

std::string EncodeGreeting(const Greeting& greeting);

enum class Verdict {
  kNeedMore,  // the bytes may become a greeting
  kGreeting,  // the bytes are a greeting
  kOther,     // the bytes are something else, or a malformed greeting
};

// Parses all bytes that were received so far. Rejects any byte after the
// greeting, because a client sends nothing until the server has answered. Sets
// `*greeting` if the result is kGreeting.
Verdict InspectGreeting(absl::string_view bytes, Greeting* greeting);

// The server's answer. Sent on each stripe, once all stripes have arrived.
constexpr size_t kAnswerBytes = 8;
absl::string_view Answer();
// Returns true if `bytes` are the answer, or its beginning.
bool IsAnswer(absl::string_view bytes);

// Shuts the connection down and closes the socket. Closing alone is not enough,
// because a forked child may have a copy of the descriptor.
void EndSocket(base::UniqueFd socket);

}  // namespace stripes
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_TCP_STRIPES_GREETING_H_
