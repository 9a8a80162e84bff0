// Tests wire::ParseHello.

#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"
#include "transport/wire/hello.h"

namespace penstock {
namespace fuzz {
namespace {

bool Same(const wire::Hello& a, const wire::Hello& b) {
  if (a.token != b.token || a.stream_window != b.stream_window ||
      a.max_streams != b.max_streams || a.offers.size() != b.offers.size()) {
    return false;
  }
  for (size_t i = 0; i < a.offers.size(); ++i) {
    if (a.offers[i].fabric != b.offers[i].fabric ||
        a.offers[i].usable != b.offers[i].usable ||
        a.offers[i].data != b.offers[i].data) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::vector<std::string> Seeds() {
  wire::Hello client;
  client.stream_window = 4 << 20;
  client.offers = {{"shm", false, "no /proc"}};
  wire::Hello server;
  server.token = "0123456789abcdef";
  server.stream_window = 1;
  server.max_streams = 100;
  server.offers = {{"shm", true, std::string(1024, 'd')},
                   {"fifteen-letters", true, ""}};
  wire::Hello full = client;
  full.offers.resize(8, full.offers[0]);
  return {wire::EncodeHello(client), wire::EncodeHello(server),
          wire::EncodeHello(full), wire::EncodeHello(server) + "more"};
}

}  // namespace fuzz
}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace penstock;
  const absl::StatusOr<wire::Hello> hello = wire::ParseHello({data, size});
  if (!hello.ok()) return 0;
  const std::string bytes = wire::EncodeHello(*hello);
  const auto again = wire::ParseHello(fuzz::AsBytes(bytes));
  fuzz::Require(again.ok() && fuzz::Same(*hello, *again),
                "what is parsed, encoded and parsed again is the same");
  fuzz::Require(bytes.size() <= size, "nothing is made up");
  return 0;
}
