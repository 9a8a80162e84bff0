// Checks that wire::SettingsAckFilter gives the same result for every division
// of its input.

#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"
#include "transport/wire/settings_ack_filter.h"

namespace penstock {
namespace fuzz {
namespace {

constexpr size_t kHeaderBytes = 9;

// Passes the bytes in parts. `cuts` has the sizes of the parts, used
// cyclically.
std::string PassParts(absl::Span<const uint8_t> bytes,
                      absl::Span<const uint8_t> cuts) {
  wire::SettingsAckFilter filter;
  std::string out;
  for (size_t i = 0; !bytes.empty(); ++i) {
    const size_t size = cuts.empty() ? 1 : 1 + cuts[i % cuts.size()];
    const absl::Span<const uint8_t> part = bytes.subspan(0, size);
    out += filter.Pass(AsText(part));
    bytes.remove_prefix(part.size());
  }
  return out;
}

}  // namespace

std::vector<std::string> Seeds() {
  const std::string settings("\0\0\6\4\0\0\0\0\0\0\4\0\1\0\0", 15);
  const std::string ack("\0\0\0\4\1\0\0\0\0", 9);
  const std::string data("\0\0\5\0\1\0\0\0\1hello", 14);
  const std::string cuts("\2\0\4", 3);
  return {cuts + settings + ack + data, cuts + ack + ack,
          cuts + data + settings + ack + data, cuts + data.substr(0, 5)};
}

}  // namespace fuzz
}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace penstock;
  fuzz::Input input(data, size);
  const absl::Span<const uint8_t> cuts =
      input.Bytes(input.Number<uint8_t>() % 8);
  const absl::Span<const uint8_t> bytes = input.Rest();
  wire::SettingsAckFilter filter;
  const std::string whole = filter.Pass(fuzz::AsText(bytes));
  fuzz::Require(whole == fuzz::PassParts(bytes, cuts),
                "the same comes out however it is cut");
  const size_t missing = bytes.size() - whole.size();
  fuzz::Require(filter.done() ? missing == fuzz::kHeaderBytes
                              : missing < fuzz::kHeaderBytes,
                "one acknowledgement is taken out, nothing else");
  return 0;
}
