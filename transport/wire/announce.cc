#include "transport/wire/announce.h"

#include <algorithm>

#include "transport/wire/frame.h"
#include "transport/wire/reader.h"

namespace penstock {
namespace wire {
namespace {

constexpr size_t kPartBytes = 3 * 8;
static_assert(8 + 8 + 1 + 2 * (4 + 2) + kMaxParts * kPartBytes + kPartBytes <=
                  kMaxFramePayload,
              "an announcement with one part for the lifeline is one frame");

void AppendRegion(const AnnouncedRegion& region, uint8_t version,
                  std::string* out) {
  AppendNumber<uint32_t>(region.path, out);
  if (version >= 2) AppendNumber<uint16_t>(region.parts.size(), out);
  for (const AnnouncedPart& part : region.parts) {
    AppendNumber<uint64_t>(part.key, out);
    AppendNumber<uint64_t>(part.offset, out);
    if (version >= 2) AppendNumber<uint64_t>(part.length, out);
  }
}

// Appends a region of a message of `length` bytes. Returns false if the region
// is malformed.
bool TakeRegion(uint64_t length, uint8_t version, Reader* reader,
                std::vector<AnnouncedRegion>* regions) {
  AnnouncedRegion region;
  region.path = reader->Number<uint32_t>();
  const size_t count = version < 2 ? 1 : reader->Number<uint16_t>();
  if (count == 0 || count > MaxParts(version, length)) return false;
  uint64_t rest = length;
  for (size_t i = 0; i < count; ++i) {
    AnnouncedPart part;
    part.key = reader->Number<uint64_t>();
    part.offset = reader->Number<uint64_t>();
    part.length = version < 2 ? length : reader->Number<uint64_t>();
    if (part.length == 0 || part.length > rest) return false;
    if (part.offset > UINT64_MAX - part.length) return false;
    rest -= part.length;
    region.parts.push_back(part);
  }
  if (rest > 0) return false;
  regions->push_back(std::move(region));
  return true;
}

}  // namespace

size_t Announce::max_parts() const {
  size_t most = 0;
  for (const AnnouncedRegion& region : regions) {
    most = std::max(most, region.parts.size());
  }
  return most;
}

std::string EncodeAnnounce(const Announce& announce, uint8_t version) {
  std::string out;
  AppendNumber<uint64_t>(announce.id, &out);
  AppendNumber<uint64_t>(announce.length, &out);
  AppendNumber<uint8_t>(announce.regions.size(), &out);
  for (const AnnouncedRegion& region : announce.regions) {
    AppendRegion(region, version, &out);
  }
  return out;
}

absl::StatusOr<Announce> ParseAnnounce(absl::Span<const uint8_t> bytes,
                                       uint8_t version) {
  Reader reader(bytes);
  Announce announce;
  announce.id = reader.Number<uint64_t>();
  announce.length = reader.Number<uint64_t>();
  const size_t count = reader.Number<uint8_t>();
  // Rejects an empty message, because no read of it would ever end.
  bool valid = announce.length > 0 && announce.length <= kMaxMessageBytes &&
               (count == 1 || count == 2);
  for (size_t i = 0; valid && i < count; ++i) {
    valid = TakeRegion(announce.length, version, &reader, &announce.regions);
  }
  if (!valid || !reader.Finished()) {
    return absl::InvalidArgumentError("malformed announcement");
  }
  return announce;
}

}  // namespace wire
}  // namespace penstock
