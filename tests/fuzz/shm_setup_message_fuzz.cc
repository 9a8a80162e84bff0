// Tests shm::DecodeSetup.

#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"
#include "transport/fabric/shm/setup_message.h"

namespace penstock {
namespace fuzz {

std::vector<std::string> Seeds() {
  using fabric::shm::SetupMessage;
  SetupMessage hello;
  hello.size = 256 * 1024;
  hello.token = "0123456789abcdef";
  SetupMessage welcome;
  welcome.kind = SetupMessage::Kind::kWelcome;
  welcome.size = 128 * 1024;
  SetupMessage segment;
  segment.kind = SetupMessage::Kind::kSegment;
  segment.size = fabric::shm::kMaxPeerBytes;
  segment.segment_id = 0xffffffff;
  SetupMessage longest = hello;
  longest.token.assign(fabric::shm::kMaxTokenBytes, 't');
  return {EncodeSetup(hello), EncodeSetup(welcome), EncodeSetup(segment),
          EncodeSetup(longest)};
}

}  // namespace fuzz
}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace penstock;
  const absl::string_view bytes = fuzz::AsText({data, size});
  const auto message = fabric::shm::DecodeSetup(bytes);
  if (!message.ok()) return 0;
  fuzz::Require(fabric::shm::EncodeSetup(*message) == bytes,
                "a message is encoded to the very bytes that it came from");
  return 0;
}
