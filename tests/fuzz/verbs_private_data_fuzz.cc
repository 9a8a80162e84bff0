// Tests verbs::ParseRequest, ParseAnswer and the proofs. All three get the same
// input. The tested side does not know the token.

#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"
#include "transport/fabric/verbs/formats/private_data.h"

namespace penstock {
namespace fuzz {
namespace {

constexpr char kSeedToken[] = "0123456789abcdef";
// A token that no seed contains.
constexpr char kSecretToken[] = "a token that no input has";
constexpr uint32_t kClientQp = 17;
constexpr uint32_t kServerQp = 18;

}  // namespace

std::vector<std::string> Seeds() {
  namespace verbs = fabric::verbs;
  verbs::Terms terms;
  terms.receives = 16;
  terms.reads = 8;
  const std::string request = verbs::MakeRequest(terms, kSeedToken, kClientQp);
  return {request, request + std::string(4, '\0'),
          verbs::MakeAnswer(terms, kSeedToken, kClientQp, kServerQp)};
}

}  // namespace fuzz
}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace penstock;
  namespace verbs = fabric::verbs;
  const absl::string_view bytes = fuzz::AsText({data, size});
  fuzz::Require(
      !verbs::RequestIsProven(bytes, fuzz::kSecretToken, fuzz::kClientQp) &&
          !verbs::AnswerIsProven(bytes, fuzz::kSecretToken, fuzz::kClientQp,
                                 fuzz::kServerQp),
      "nobody proves a token without knowing it");
  const auto request = verbs::ParseRequest(bytes);
  if (request.ok()) {
    fuzz::Require(size >= verbs::kRequestBytes, "a request is whole");
    fuzz::Require(request->terms.receives >= 4 && request->terms.reads >= 1,
                  "terms are of use");
    fuzz::Require(request->token_name.size() == verbs::kTokenNameBytes,
                  "a name has its length");
    // Encodes the parsed values again. The bytes before the name must not
    // change.
    const std::string again =
        verbs::MakeRequest(request->terms, fuzz::kSeedToken, fuzz::kClientQp);
    fuzz::Require(again.substr(0, 12) == bytes.substr(0, 12),
                  "terms are encoded to the very bytes that they came from");
  }
  const auto answer = verbs::ParseAnswer(bytes);
  if (answer.ok()) {
    fuzz::Require(size >= verbs::kAnswerBytes, "an answer is whole");
    fuzz::Require(answer->receives >= 4 && answer->reads >= 1,
                  "terms are of use");
  }
  return 0;
}
