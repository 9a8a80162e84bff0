#include "transport/fabric/tcp/stripes/greeting.h"

#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "transport/base/token.h"

namespace penstock {
namespace fabric {
namespace stripes {
namespace {

// A text that differs from the first bytes of HTTP/2, TLS and the greeting of
// transport/rpc.
constexpr absl::string_view kMagic("PSTKstr?", 8);
constexpr absl::string_view kAnswer("PSTKstr!", kAnswerBytes);

static_assert(kGreetingBytes == 8 + 2 + base::kTokenBytes,
              "the magic, two numbers and the token");

}  // namespace

std::string EncodeGreeting(const Greeting& greeting) {
  std::string bytes(kMagic);
  bytes.push_back(static_cast<char>(greeting.count));
  bytes.push_back(static_cast<char>(greeting.index));
  bytes += greeting.token;
  return bytes;
}

Verdict InspectGreeting(absl::string_view bytes, Greeting* greeting) {
  const size_t known = std::min(bytes.size(), kMagic.size());
  if (bytes.substr(0, known) != kMagic.substr(0, known)) return Verdict::kOther;
  if (bytes.size() < kGreetingBytes) return Verdict::kNeedMore;
  const auto count = static_cast<uint8_t>(bytes[kMagic.size()]);
  const auto index = static_cast<uint8_t>(bytes[kMagic.size() + 1]);
  if (bytes.size() > kGreetingBytes || count < 2 || count > kMostStripes ||
      index >= count) {
    return Verdict::kOther;
  }
  greeting->count = count;
  greeting->index = index;
  greeting->token = std::string(bytes.substr(kMagic.size() + 2));
  return Verdict::kGreeting;
}

absl::string_view Answer() { return kAnswer; }

bool IsAnswer(absl::string_view bytes) {
  return bytes == kAnswer.substr(0, bytes.size());
}

void EndSocket(base::UniqueFd socket) {
  if (socket.valid()) shutdown(socket.get(), SHUT_RDWR);
}

}  // namespace stripes
}  // namespace fabric
}  // namespace penstock
