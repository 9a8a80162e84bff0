#include "transport/wire/hello.h"

#include "transport/base/token.h"
#include "transport/wire/reader.h"

namespace penstock {
namespace wire {
namespace {

constexpr size_t kMaxOffers = 8;
constexpr size_t kMaxNameBytes = 15;
constexpr size_t kMaxOfferBytes = 1024;

void AppendOffer(const FabricOffer& offer, std::string* out) {
  AppendNumber<uint8_t>(offer.usable ? 1 : 0, out);
  AppendNumber<uint8_t>(offer.fabric.size(), out);
  out->append(offer.fabric);
  AppendNumber<uint16_t>(offer.data.size(), out);
  out->append(offer.data);
}

FabricOffer ReadOffer(Reader* reader) {
  FabricOffer offer;
  offer.usable = reader->Number<uint8_t>() != 0;
  offer.fabric = reader->String(reader->Number<uint8_t>());
  offer.data = reader->String(reader->Number<uint16_t>());
  return offer;
}

bool IsWithinLimits(const FabricOffer& offer) {
  return !offer.fabric.empty() && offer.fabric.size() <= kMaxNameBytes &&
         offer.data.size() <= kMaxOfferBytes;
}

}  // namespace

std::string EncodeHello(const Hello& hello) {
  std::string out;
  AppendNumber<uint16_t>(hello.token.size(), &out);
  out.append(hello.token);
  AppendNumber<uint32_t>(hello.stream_window, &out);
  AppendNumber<uint32_t>(hello.max_streams, &out);
  AppendNumber<uint8_t>(hello.offers.size(), &out);
  for (const FabricOffer& offer : hello.offers) AppendOffer(offer, &out);
  return out;
}

absl::StatusOr<Hello> ParseHello(absl::Span<const uint8_t> bytes) {
  Reader reader(bytes);
  Hello hello;
  hello.token = reader.String(reader.Number<uint16_t>());
  hello.stream_window = reader.Number<uint32_t>();
  hello.max_streams = reader.Number<uint32_t>();
  const size_t offers = reader.Number<uint8_t>();
  bool valid =
      (hello.token.empty() || hello.token.size() == base::kTokenBytes) &&
      hello.stream_window > 0 && hello.stream_window <= kMaxStreamWindow &&
      offers <= kMaxOffers;
  for (size_t i = 0; valid && i < offers; ++i) {
    hello.offers.push_back(ReadOffer(&reader));
    valid = reader.ok() && IsWithinLimits(hello.offers.back());
  }
  if (!valid || !reader.ok()) {
    return absl::InvalidArgumentError("malformed hello");
  }
  return hello;
}

}  // namespace wire
}  // namespace penstock
