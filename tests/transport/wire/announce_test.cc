#include "transport/wire/announce.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "tests/transport/wire/wire_test_util.h"

namespace penstock {
namespace wire {
namespace {

// Returns an announcement of two regions of one part each, as in version 1.
Announce TwoRegions() {
  Announce announce;
  announce.id = 0x0102;
  announce.length = 0x030405;
  announce.regions = {{7, {{0x11, 0x22, 0x030405}}},
                      {0, {{0x33, 0x44, 0x030405}}}};
  return announce;
}

// The golden bytes of an announcement of version 1. Never change these, because
// peers of version 1 send them.
constexpr char kVersion1[] =
    "0201000000000000 0504030000000000 02"
    "07000000 1100000000000000 2200000000000000"
    "00000000 3300000000000000 4400000000000000";

Announce ThreeParts() {
  Announce announce = TwoRegions();
  announce.regions[0].parts = {
      {0x11, 0x22, 0x030000}, {0x55, 0x66, 0x0404}, {0x77, 0x88, 1}};
  return announce;
}

constexpr char kThreeParts[] =
    "0201000000000000 0504030000000000 02"
    "07000000 0300"
    "1100000000000000 2200000000000000 0000030000000000"
    "5500000000000000 6600000000000000 0404000000000000"
    "7700000000000000 8800000000000000 0100000000000000"
    "00000000 0100"
    "3300000000000000 4400000000000000 0504030000000000";

bool IsMalformed(const std::string& bytes, uint8_t version) {
  return absl::IsInvalidArgument(
      ParseAnnounce(AsSpan(bytes), version).status());
}
bool IsMalformed(const Announce& announce) {
  return IsMalformed(EncodeAnnounce(announce, 2), 2);
}

void ExpectEqual(const Announce& one, const Announce& other) {
  EXPECT_EQ(one.id, other.id);
  EXPECT_EQ(one.length, other.length);
  ASSERT_EQ(one.regions.size(), other.regions.size());
  for (size_t i = 0; i < one.regions.size(); ++i) {
    EXPECT_EQ(one.regions[i].path, other.regions[i].path);
    ASSERT_EQ(one.regions[i].parts.size(), other.regions[i].parts.size());
    for (size_t k = 0; k < one.regions[i].parts.size(); ++k) {
      const AnnouncedPart& part = one.regions[i].parts[k];
      const AnnouncedPart& twin = other.regions[i].parts[k];
      EXPECT_EQ(part.key, twin.key);
      EXPECT_EQ(part.offset, twin.offset);
      EXPECT_EQ(part.length, twin.length);
    }
  }
}

void ExpectGolden(const Announce& announce, const char* hex, uint8_t version) {
  const std::string bytes = FromHex(hex);
  EXPECT_EQ(EncodeAnnounce(announce, version), bytes);
  absl::StatusOr<Announce> parsed = ParseAnnounce(AsSpan(bytes), version);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  ExpectEqual(*parsed, announce);
}

TEST(AnnounceWire, GoldenBytes) {
  ExpectGolden(TwoRegions(), kVersion1, 1);
  ExpectGolden(ThreeParts(), kThreeParts, 2);
}

TEST(AnnounceWire, AVersionDoesNotTakeTheBytesOfTheOther) {
  EXPECT_TRUE(IsMalformed(FromHex(kVersion1), 2));
  EXPECT_TRUE(IsMalformed(FromHex(kThreeParts), 1));
}

TEST(AnnounceWire, CountsThePartsOfTheLongerRegion) {
  EXPECT_EQ(Announce().max_parts(), 0u);
  EXPECT_EQ(TwoRegions().max_parts(), 1u);
  EXPECT_EQ(ThreeParts().max_parts(), 3u);
}

TEST(AnnounceWire, PartsAreTheWholeMessage) {
  EXPECT_FALSE(IsMalformed(ThreeParts()));
  for (int64_t change : {-1, 1, 1 << 20}) {
    Announce announce = ThreeParts();
    announce.regions[0].parts[1].length += change;
    EXPECT_TRUE(IsMalformed(announce)) << change;
  }
}

TEST(AnnounceWire, SumsOfLengthsDoNotWrap) {
  Announce announce = ThreeParts();
  announce.regions[0].parts[0].length = uint64_t{1} << 63;
  announce.regions[0].parts[1].length = uint64_t{1} << 63;
  announce.regions[0].parts[2].length = announce.length;
  EXPECT_TRUE(IsMalformed(announce));
}

TEST(AnnounceWire, LengthsAboveTheLimitAreRejected) {
  for (const uint64_t length :
       {kMaxMessageBytes - 1, kMaxMessageBytes, kMaxMessageBytes + 1,
        uint64_t{1} << 63, UINT64_MAX - 63, UINT64_MAX}) {
    Announce announce;
    announce.length = length;
    announce.regions = {{0, {{1, 0, length}}}};
    const bool is_above = length > kMaxMessageBytes;
    for (uint8_t version : {1, 2}) {
      EXPECT_EQ(IsMalformed(EncodeAnnounce(announce, version), version),
                is_above)
          << length;
    }
  }
}

TEST(AnnounceWire, NoPartWrapsRound) {
  for (const uint64_t offset : {UINT64_MAX, UINT64_MAX - 0x0404}) {
    Announce announce = ThreeParts();
    announce.regions[0].parts[1].offset = offset;
    EXPECT_EQ(IsMalformed(announce), offset == UINT64_MAX);
  }
}

TEST(AnnounceWire, NoPartIsEmpty) {
  Announce announce = ThreeParts();
  announce.regions[0].parts.push_back({1, 2, 0});
  EXPECT_TRUE(IsMalformed(announce));
}

Announce OfParts(size_t count, uint64_t length) {
  Announce announce;
  announce.length = length;
  announce.regions = {{7, std::vector<AnnouncedPart>(count, {1, 2, 1})}};
  if (count > 0) announce.regions[0].parts[0].length = length - (count - 1);
  return announce;
}

TEST(AnnounceWire, ThereAreUpTo512Parts) {
  for (size_t count : {0, 1, 2, 511, 512, 513, 65535}) {
    EXPECT_EQ(IsMalformed(OfParts(count, 1 << 30)), count == 0 || count > 512)
        << count;
  }
}

TEST(AnnounceWire, AShortMessageHasFewParts) {
  EXPECT_EQ(MaxParts(1, 1 << 30), 1u);
  EXPECT_EQ(MaxParts(2, UINT64_MAX), 512u);
  for (uint64_t length : {2, 4095, 4096, 8191, 8192, 1000000}) {
    const size_t most = MaxParts(2, length);
    EXPECT_EQ(most, 1 + 2 * (length / 4096));
    EXPECT_FALSE(IsMalformed(OfParts(most, length))) << length;
    EXPECT_TRUE(IsMalformed(OfParts(most + 1, length))) << length;
  }
}

TEST(AnnounceWire, CutAnywhereIsRejected) {
  for (uint8_t version : {1, 2}) {
    const std::string bytes = FromHex(version == 1 ? kVersion1 : kThreeParts);
    for (size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_TRUE(IsMalformed(bytes.substr(0, size), version)) << size;
    }
  }
}

TEST(AnnounceWire, BytesLeftOverAreRejected) {
  EXPECT_TRUE(IsMalformed(FromHex(kVersion1) + "x", 1));
  EXPECT_TRUE(IsMalformed(FromHex(kThreeParts) + "x", 2));
}

TEST(AnnounceWire, OneOrTwoRegionsAreTaken) {
  for (int count : {0, 1, 2, 3, 255}) {
    Announce announce = TwoRegions();
    announce.regions.resize(count, announce.regions[0]);
    EXPECT_EQ(IsMalformed(announce), count != 1 && count != 2) << count;
    EXPECT_EQ(IsMalformed(EncodeAnnounce(announce, 1), 1),
              count != 1 && count != 2)
        << count;
  }
}

// Tests an empty message, for which no read would ever report the end.
TEST(AnnounceWire, EmptyMessageIsRejected) {
  Announce announce = TwoRegions();
  announce.length = 0;
  EXPECT_TRUE(IsMalformed(EncodeAnnounce(announce, 1), 1));
  for (AnnouncedRegion& region : announce.regions) region.parts[0].length = 0;
  EXPECT_TRUE(IsMalformed(announce));
}

AnnouncedRegion RandomRegion(uint64_t length, uint8_t version,
                             Mutator* random) {
  const size_t max_parts = std::min<size_t>(20, MaxParts(version, length));
  AnnouncedRegion region;
  region.path = static_cast<uint32_t>(random->Below(2));
  while (length > 0) {
    const bool is_last =
        region.parts.size() + 1 == max_parts || random->Below(3) == 0;
    const uint64_t part = is_last ? length : 1 + random->Below(length);
    region.parts.push_back(
        {random->Below(~uint64_t{0}), random->Below(~part), part});
    length -= part;
  }
  return region;
}

TEST(AnnounceWire, EncodeThenParseIsIdentity) {
  Mutator random(3);
  for (int i = 0; i < 4000; ++i) {
    const uint8_t version = 1 + i % 2;
    Announce announce;
    announce.id = random.Below(~uint64_t{0});
    announce.length = 1 + random.Below(kMaxMessageBytes);
    for (uint64_t n = 1 + random.Below(2); n > 0; --n) {
      announce.regions.push_back(
          RandomRegion(announce.length, version, &random));
    }
    const std::string bytes = EncodeAnnounce(announce, version);
    absl::StatusOr<Announce> parsed = ParseAnnounce(AsSpan(bytes), version);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    ExpectEqual(*parsed, announce);
  }
}

TEST(AnnounceWire, DamageIsRejectedOrMeansWhatItSays) {
  Mutator random(4);
  for (int i = 0; i < 40000; ++i) {
    const uint8_t version = 1 + i % 2;
    const std::string bytes =
        random.Mutate(FromHex(version == 1 ? kVersion1 : kThreeParts));
    absl::StatusOr<Announce> parsed = ParseAnnounce(AsSpan(bytes), version);
    if (!parsed.ok()) continue;
    EXPECT_EQ(EncodeAnnounce(*parsed, version), bytes);
  }
}

}  // namespace
}  // namespace wire
}  // namespace penstock
