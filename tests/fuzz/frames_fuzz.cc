// Tests wire::TakeFrame, repeatedly until the end of the message.

#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"
#include "transport/wire/frame.h"

namespace penstock {
namespace fuzz {
namespace {

std::string FrameOf(wire::FrameType type, const std::string& payload,
                    uint8_t flags = 0) {
  wire::FrameHeader header;
  header.type = type;
  header.flags = flags;
  header.length = static_cast<uint32_t>(payload.size());
  header.stream = 1;
  header.aux = 2;
  header.sequence = wire::IsSequenced(type) ? 3 : 0;
  header.ack = 4;
  std::string bytes;
  wire::AppendFrame(header, payload, &bytes);
  return bytes;
}

}  // namespace

std::vector<std::string> Seeds() {
  using wire::FrameType;
  std::vector<std::string> seeds;
  std::string all;
  for (int type = 1; type <= 27; ++type) {
    if (type == 7) type = 16;
    seeds.push_back(FrameOf(static_cast<FrameType>(type), "payload"));
    all += seeds.back();
  }
  seeds.push_back(all);
  seeds.push_back(FrameOf(FrameType::kMessage,
                          std::string(wire::kMaxFramePayload, 'm'),
                          wire::kKnownFlags));
  return seeds;
}

}  // namespace fuzz
}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace penstock;
  absl::Span<const uint8_t> message(data, size);
  while (!message.empty()) {
    const absl::Span<const uint8_t> before = message;
    const absl::StatusOr<wire::Frame> frame = wire::TakeFrame(&message);
    if (!frame.ok()) return 0;
    const size_t taken = before.size() - message.size();
    fuzz::Require(taken <= before.size() && taken >= wire::kFrameHeaderBytes &&
                      taken <= wire::kMaxFrameBytes,
                  "a frame is taken off, and no more");
    std::string again;
    wire::AppendFrame(frame->header, fuzz::AsText(frame->payload), &again);
    fuzz::Require(again == fuzz::AsText(before.first(taken)),
                  "a frame is encoded to the very bytes that it came from");
  }
  return 0;
}
