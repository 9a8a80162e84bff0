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
    AppendNumber<uint32_t>(region.path, &out);
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
  // An empty message would never end: nothing of it is read.
  bool valid = announce.length > 0 && (count == 1 || count == 2);
  for (size_t i = 0; valid && i < count; ++i) {
    AnnouncedRegion region;
    region.path = reader.Number<uint32_t>();
    region.key = reader.Number<uint64_t>();
    region.offset = reader.Number<uint64_t>();
    announce.regions.push_back(region);
  }
  if (!valid || !reader.Finished()) {
    return absl::InvalidArgumentError("malformed announcement");
  }
  return announce;
}

}  // namespace wire
}  // namespace penstock
