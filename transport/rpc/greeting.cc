#include "transport/rpc/greeting.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "transport/wire/reader.h"

namespace penstock {
namespace rpc {
namespace {

// Differs from the first bytes of HTTP, TLS and gRPC's HTTP/2.
constexpr absl::string_view kGreetingMagic = "PSTKrpc?";
constexpr absl::string_view kAnswerMagic = "PSTKrpc!";

// Removes `magic` and a body from the beginning of `*bytes`, and returns the
// body. A body has `fixed` bytes, and then a variable part of at most `most`
// bytes. The last two fixed bytes are the length of the variable part.
absl::StatusOr<absl::optional<absl::string_view>> TakeBody(
    absl::string_view magic, size_t fixed, size_t most,
    absl::string_view* bytes) {
  const size_t known = std::min(bytes->size(), magic.size());
  if (bytes->substr(0, known) != magic.substr(0, known)) {
    return absl::InvalidArgumentError("the peer does not speak Penstock's rpc");
  }
  if (bytes->size() < magic.size() + fixed) return absl::nullopt;
  const absl::string_view body = bytes->substr(magic.size());
  const size_t rest = base::LoadLittle<uint16_t>(
      reinterpret_cast<const uint8_t*>(body.data()) + fixed - 2);
  if (rest > most) {
    return absl::InvalidArgumentError("the peer's greeting is too long");
  }
  if (body.size() < fixed + rest) return absl::nullopt;
  bytes->remove_prefix(magic.size() + fixed + rest);
  return absl::make_optional(body.substr(0, fixed + rest));
}

absl::Span<const uint8_t> AsSpan(absl::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

void AppendText(absl::string_view text, std::string* out) {
  wire::AppendNumber<uint16_t>(static_cast<uint16_t>(text.size()), out);
  out->append(text.data(), text.size());
}

}  // namespace

std::string EncodeGreeting(const Greeting& greeting) {
  std::string bytes(kGreetingMagic);
  wire::AppendNumber<uint8_t>(greeting.oldest, &bytes);
  wire::AppendNumber<uint8_t>(greeting.newest, &bytes);
  AppendText(absl::string_view(greeting.token).substr(0, kMaxTokenBytes),
             &bytes);
  return bytes;
}

std::string EncodeAnswer(const Answer& answer) {
  std::string bytes(kAnswerMagic);
  wire::AppendNumber<uint8_t>(answer.version, &bytes);
  AppendText(absl::string_view(answer.refusal).substr(0, kMaxRefusalBytes),
             &bytes);
  return bytes;
}

absl::StatusOr<absl::optional<Greeting>> TakeGreeting(
    absl::string_view* bytes) {
  absl::StatusOr<absl::optional<absl::string_view>> body =
      TakeBody(kGreetingMagic, 4, kMaxTokenBytes, bytes);
  if (!body.ok()) return body.status();
  if (!body->has_value()) return absl::nullopt;
  wire::Reader reader(AsSpan(**body));
  Greeting greeting;
  greeting.oldest = reader.Number<uint8_t>();
  greeting.newest = reader.Number<uint8_t>();
  greeting.token = reader.String(reader.Number<uint16_t>());
  return absl::make_optional(std::move(greeting));
}

absl::StatusOr<absl::optional<Answer>> TakeAnswer(absl::string_view* bytes) {
  absl::StatusOr<absl::optional<absl::string_view>> body =
      TakeBody(kAnswerMagic, 3, kMaxRefusalBytes, bytes);
  if (!body.ok()) return body.status();
  if (!body->has_value()) return absl::nullopt;
  wire::Reader reader(AsSpan(**body));
  Answer answer;
  answer.version = reader.Number<uint8_t>();
  answer.refusal = reader.String(reader.Number<uint16_t>());
  return absl::make_optional(std::move(answer));
}

bool IsSameToken(absl::string_view one, absl::string_view other) {
  if (one.size() != other.size()) return false;
  unsigned char difference = 0;
  for (size_t i = 0; i < one.size(); ++i) {
    difference |= static_cast<unsigned char>(one[i] ^ other[i]);
  }
  return difference == 0;
}

}  // namespace rpc
}  // namespace penstock
