// Tests verbs::ParseOffer.

#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"
#include "transport/fabric/verbs/formats/address.h"

namespace penstock {
namespace fuzz {

std::vector<std::string> Seeds() {
  std::string longest;
  for (size_t i = 0; i < fabric::verbs::kMaxOffered; ++i) {
    longest += "10.9.0.255 65535\n";
  }
  return {"10.9.0.1 4791\n", "fd00::1 1\n10.9.0.1 32768\n",
          "::ffff:10.9.0.1 7\n", longest};
}

}  // namespace fuzz
}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace penstock;
  namespace verbs = fabric::verbs;
  const auto addresses = verbs::ParseOffer(fuzz::AsText({data, size}));
  if (!addresses.ok()) return 0;
  fuzz::Require(!addresses->empty() && addresses->size() <= verbs::kMaxOffered,
                "an offer has a bounded number of addresses");
  for (const verbs::Address& address : *addresses) {
    fuzz::Require(address.port() != 0, "an offered address has a port");
    fuzz::Require(address.AsGid().size() == 16, "a GID has sixteen bytes");
  }
  // Compares two encoded offers, not the encoded offer with the input: an
  // address may have several notations.
  const std::string offer = verbs::MakeOffer(*addresses);
  const auto again = verbs::ParseOffer(offer);
  fuzz::Require(again.ok() && verbs::MakeOffer(*again) == offer,
                "what was understood can be offered");
  return 0;
}
