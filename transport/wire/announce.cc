#include "transport/wire/announce.h"

#include "transport/wire/reader.h"

namespace penstock {
namespace wire {

std::string EncodeAnnounce(const Announce& announce) {
  std::string out;
  AppendNumber<uint64_t>(announce.id, &out);
  AppendNumber<uint64_t>(announce.length, &out);
  AppendNumber<uint8_t>(announce.regions.size(), &out);
  for (const AnnouncedRegion& region : announce.regions) {
    AppendNumber<uint8_t>(region.on_lifeline ? 1 : 0, &out);
    AppendNumber<uint64_t>(region.key, &out);
    AppendNumber<uint64_t>(region.offset, &out);
  }
  return out;
}

absl::StatusOr<Announce> ParseAnnounce(absl::Span<const uint8_t> bytes) {
  Reader reader(bytes);
  Announce announce;
  announce.id = reader.Number<uint64_t>();
  announce.length = reader.Number<uint64_t>();
  const size_t count = reader.Number<uint8_t>();
  // An empty message needs no reading, so no read would ever end it.
  bool valid = announce.length > 0 && (count == 1 || count == 2);
  for (size_t i = 0; valid && i < count; ++i) {
    const uint8_t path = reader.Number<uint8_t>();
    AnnouncedRegion region;
    region.on_lifeline = path == 1;
    region.key = reader.Number<uint64_t>();
    region.offset = reader.Number<uint64_t>();
    valid = path <= 1;
    announce.regions.push_back(region);
  }
  if (!valid || !reader.Finished()) {
    return absl::InvalidArgumentError("malformed announcement");
  }
  return announce;
}

}  // namespace wire
}  // namespace penstock
