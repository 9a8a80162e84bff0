// Tests the parsers of messages between ranks: collectives::DecodeMessage,
// DecodeIntroduction and ParseAddress, and the descriptions of calls.
//
// The input begins with a number that chooses the parser. The rest is its
// input.

#include <string>

#include "collectives/call.h"
#include "collectives/host/introduction.h"
#include "collectives/net/address.h"
#include "collectives/net/message.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"
#include "transport/base/token.h"

namespace penstock {
namespace fuzz {
namespace {

using collectives::DecodeIntroduction;
using collectives::DecodeMessage;

constexpr char kSame[] =
    "a message is encoded to the bytes it was decoded from";

void CheckMessage(absl::string_view bytes) {
  const auto message = DecodeMessage(bytes);
  if (!message.ok()) return;
  Require(collectives::Encode(*message) == bytes, kSame);
  Require(!collectives::Describe(message->words).empty(), "any call has text");
}

void CheckIntroduction(absl::string_view bytes) {
  const auto introduction = DecodeIntroduction(bytes);
  if (!introduction.ok()) return;
  Require(collectives::Encode(*introduction) == bytes, kSame);
}

void CheckAddress(absl::string_view text) {
  const auto address = collectives::ParseAddress(text);
  if (!address.ok()) return;
  Require(collectives::ToText(*address) == text, kSame);
}

}  // namespace

std::vector<std::string> Seeds() {
  collectives::Message message;
  message.kind = collectives::Message::Kind::kFailure;
  message.key = {collectives::ChannelOf(7), uint64_t{1} << 40, 3};
  message.words = collectives::Encode(collectives::Call());
  message.text = "rank 1 has died";
  collectives::Introduction introduction;
  introduction.token = std::string(base::kTokenBytes, 't');
  const collectives::Address address = {"10.0.0.7:80", introduction.token, "h"};
  return {Number<uint8_t>(0) + collectives::Encode(message),
          Number<uint8_t>(1) + collectives::Encode(introduction),
          Number<uint8_t>(2) + collectives::ToText(address)};
}

}  // namespace fuzz
}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace penstock;
  fuzz::Input input(data, size);
  const auto parser = input.Number<uint8_t>();
  const absl::string_view bytes = fuzz::AsText(input.Rest());
  if (parser % 3 == 0) fuzz::CheckMessage(bytes);
  if (parser % 3 == 1) fuzz::CheckIntroduction(bytes);
  if (parser % 3 == 2) fuzz::CheckAddress(bytes);
  return 0;
}
