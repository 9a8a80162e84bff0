// Tests monitoring::ParseHttpRequest.
//
// The input: the number of bytes that arrive first, and then all bytes.

#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"
#include "transport/monitoring/http_request.h"

namespace penstock {
namespace fuzz {

std::vector<std::string> Seeds() {
  const std::string cut = Number<uint16_t>(12);
  return {cut + "GET /metrics?a=b HTTP/1.1\r\nHost: ps0\r\n\r\n",
          cut + "HEAD / HTTP/1.0\n\nbehind", cut + "GET\r\n\r\n",
          cut + "GET /" + std::string(monitoring::kMaxHeadBytes, 'a')};
}

}  // namespace fuzz
}  // namespace penstock

// Fails if later bytes change the verdict on a complete or malformed head.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace penstock;
  fuzz::Input input(data, size);
  const size_t first = input.Number<uint16_t>();
  const absl::string_view bytes = fuzz::AsText(input.Rest());
  const auto early = monitoring::ParseHttpRequest(bytes.substr(0, first));
  const auto whole = monitoring::ParseHttpRequest(bytes);
  if (!early.ok()) {
    fuzz::Require(!whole.ok(), "nothing makes good what is wrong");
  } else if (early->has_value()) {
    fuzz::Require(whole.ok() && whole->has_value(), "a head stays complete");
    fuzz::Require((*early)->method == (*whole)->method &&
                      (*early)->path == (*whole)->path,
                  "cuts change nothing");
  } else {
    fuzz::Require(std::min(first, bytes.size()) < monitoring::kMaxHeadBytes,
                  "a head ends within its limit");
  }
  return 0;
}
