// Tests rpc::TakeGreeting and rpc::TakeAnswer.
//
// The input begins with a number N. The rest is a byte stream, of which the
// first N bytes arrive before the others.

#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"
#include "transport/rpc/greeting.h"

namespace penstock {
namespace fuzz {
namespace {

std::string Encoded(const rpc::Greeting& greeting) {
  return rpc::EncodeGreeting(greeting);
}
std::string Encoded(const rpc::Answer& answer) {
  return rpc::EncodeAnswer(answer);
}

template <typename Take>
void Check(absl::string_view bytes, size_t first, const Take& take) {
  absl::string_view beginning = bytes.substr(0, first);
  const auto early = take(&beginning);
  absl::string_view rest = bytes;
  const auto taken = take(&rest);
  if (!early.ok()) Require(!taken.ok(), "nothing makes good what is wrong");
  if (!taken.ok() || !taken->has_value()) return;
  Require(Encoded(**taken) == bytes.substr(0, bytes.size() - rest.size()),
          "a greeting is encoded to the very bytes that were taken off");
  if (early->has_value()) {
    Require(Encoded(**early) == Encoded(**taken), "cuts change nothing");
  }
}

}  // namespace

std::vector<std::string> Seeds() {
  const std::string cut = Number<uint8_t>(12);
  const std::string longest(rpc::kMaxTokenBytes, 't');
  return {cut + rpc::EncodeGreeting({1, 2, "token"}) + "behind",
          cut + rpc::EncodeGreeting({0, 255, longest}),
          cut + rpc::EncodeAnswer({2, ""}) + "behind",
          cut + rpc::EncodeAnswer({0, std::string(512, 'r')})};
}

}  // namespace fuzz
}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace penstock;
  fuzz::Input input(data, size);
  const size_t first = input.Number<uint8_t>();
  const absl::string_view bytes = fuzz::AsText(input.Rest());
  fuzz::Check(bytes, first, rpc::TakeGreeting);
  fuzz::Check(bytes, first, rpc::TakeAnswer);
  return 0;
}
