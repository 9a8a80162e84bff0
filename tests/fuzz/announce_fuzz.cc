// wire::ParseAnnounce.

#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"
#include "transport/wire/announce.h"

namespace penstock {
namespace fuzz {

std::vector<std::string> Seeds() {
  wire::Announce one;
  one.id = 1;
  one.length = 1 << 20;
  one.regions = {{0, 9, 0}};
  wire::Announce two = one;
  two.id = 7;
  two.regions = {{1, uint64_t{1} << 32 | 5, 4096}, {0, 9, 0}};
  return {wire::EncodeAnnounce(one), wire::EncodeAnnounce(two)};
}

}  // namespace fuzz
}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace penstock;
  const auto announce = wire::ParseAnnounce({data, size});
  if (!announce.ok()) return 0;
  fuzz::Require(
      wire::EncodeAnnounce(*announce) == fuzz::AsText({data, size}),
      "an announcement is encoded to the very bytes that it came from");
  fuzz::Require(!announce->regions.empty() && announce->regions.size() <= 2,
                "an announcement has one or two regions");
  return 0;
}
