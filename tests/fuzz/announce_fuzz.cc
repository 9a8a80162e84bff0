// Tests wire::ParseAnnounce, for each version of the protocol.

#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"
#include "transport/wire/announce.h"
#include "transport/wire/frame.h"

namespace penstock {
namespace fuzz {

std::vector<std::string> Seeds() {
  wire::Announce one;
  one.id = 1;
  one.length = 1 << 20;
  one.regions = {{0, {{9, 0, 1 << 20}}}};
  wire::Announce two = one;
  two.id = 7;
  const uint64_t key = uint64_t{1} << 32 | 5;
  two.regions = {{1, {{key, 4096, 1 << 20}}}, {0, {{9, 0, 1 << 20}}}};
  wire::Announce parts = two;
  parts.regions[0].parts = {{key, 4096, 1 << 19}, {key, 0, 1 << 19}};
  return {wire::EncodeAnnounce(one, 1), wire::EncodeAnnounce(two, 1),
          wire::EncodeAnnounce(one, 2), wire::EncodeAnnounce(two, 2),
          wire::EncodeAnnounce(parts, 2)};
}

namespace {

void Check(absl::Span<const uint8_t> bytes, uint8_t version) {
  const auto announce = wire::ParseAnnounce(bytes, version);
  if (!announce.ok()) return;
  Require(wire::EncodeAnnounce(*announce, version) == AsText(bytes),
          "an announcement is encoded to the very bytes that it came from");
  Require(!announce->regions.empty() && announce->regions.size() <= 2,
          "an announcement has one or two regions");
  for (const wire::AnnouncedRegion& region : announce->regions) {
    Require(region.parts.size() <= wire::MaxParts(version, announce->length),
            "a region has no more parts than its message may have");
    uint64_t length = 0;
    for (const wire::AnnouncedPart& part : region.parts) {
      Require(part.length > 0, "no part is empty");
      Require(part.length <= announce->length - length,
              "the parts are no longer than the message");
      length += part.length;
    }
    Require(length == announce->length, "the parts are all of the message");
  }
}

}  // namespace
}  // namespace fuzz
}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace penstock;
  for (uint8_t version : {wire::kOldestVersion, wire::kVersion}) {
    fuzz::Check({data, size}, version);
  }
  return 0;
}
