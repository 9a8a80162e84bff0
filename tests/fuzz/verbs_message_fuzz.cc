// verbs::ParseHeader.

#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"
#include "transport/fabric/verbs/message.h"

namespace penstock {
namespace fuzz {
namespace {

std::string Encoded(const fabric::verbs::MessageHeader& header) {
  std::string bytes(fabric::verbs::kMessageHeaderBytes, '\0');
  fabric::verbs::EncodeHeader(header, reinterpret_cast<uint8_t*>(&bytes[0]));
  return bytes;
}

}  // namespace

std::vector<std::string> Seeds() {
  fabric::verbs::MessageHeader message;
  message.credits = 3;
  fabric::verbs::MessageHeader credits;
  credits.kind = fabric::verbs::MessageHeader::Kind::kCredits;
  credits.credits = 0xffff;
  return {Encoded(message) + "a frame", Encoded(credits)};
}

}  // namespace fuzz
}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace penstock;
  using fabric::verbs::kMessageHeaderBytes;
  const auto header = fabric::verbs::ParseHeader({data, size});
  if (!header.ok()) return 0;
  fuzz::Require(size >= kMessageHeaderBytes, "a message has its header");
  fuzz::Require(
      fuzz::Encoded(*header) == fuzz::AsText({data, kMessageHeaderBytes}),
      "a header is encoded to the very bytes that it came from");
  fuzz::Require(header->kind == fabric::verbs::MessageHeader::Kind::kMessage ||
                    size == kMessageHeaderBytes,
                "nothing follows what only grants credits");
  return 0;
}
