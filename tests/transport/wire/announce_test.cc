#include "transport/wire/announce.h"

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "tests/transport/wire/wire_test_util.h"

namespace penstock {
namespace wire {
namespace {

Announce TwoRegions() {
  Announce announce;
  announce.id = 0x0102;
  announce.length = 0x030405;
  announce.regions = {{7, 0x11, 0x22}, {0, 0x33, 0x44}};
  return announce;
}

constexpr char kTwoRegions[] =
    "0201000000000000 0504030000000000 02"
    "07000000 1100000000000000 2200000000000000"
    "00000000 3300000000000000 4400000000000000";

bool IsMalformed(const std::string& bytes) {
  return absl::IsInvalidArgument(ParseAnnounce(AsSpan(bytes)).status());
}

TEST(AnnounceWire, GoldenBytes) {
  EXPECT_EQ(EncodeAnnounce(TwoRegions()), FromHex(kTwoRegions));
  const std::string bytes = FromHex(kTwoRegions);
  absl::StatusOr<Announce> parsed = ParseAnnounce(AsSpan(bytes));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->id, 0x0102u);
  EXPECT_EQ(parsed->length, 0x030405u);
  ASSERT_EQ(parsed->regions.size(), 2u);
  EXPECT_EQ(parsed->regions[0].path, 7u);
  EXPECT_EQ(parsed->regions[0].key, 0x11u);
  EXPECT_EQ(parsed->regions[0].offset, 0x22u);
  EXPECT_EQ(parsed->regions[1].path, 0u);
  EXPECT_EQ(parsed->regions[1].key, 0x33u);
  EXPECT_EQ(parsed->regions[1].offset, 0x44u);
}

TEST(AnnounceWire, CutAnywhereIsRejected) {
  const std::string bytes = FromHex(kTwoRegions);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_TRUE(IsMalformed(bytes.substr(0, size))) << size;
  }
}

TEST(AnnounceWire, BytesLeftOverAreRejected) {
  EXPECT_TRUE(IsMalformed(FromHex(kTwoRegions) + "x"));
}

TEST(AnnounceWire, OneOrTwoRegionsAreTaken) {
  for (int count : {0, 1, 2, 3, 255}) {
    Announce announce = TwoRegions();
    announce.regions.resize(count);
    EXPECT_EQ(IsMalformed(EncodeAnnounce(announce)), count != 1 && count != 2)
        << count;
  }
}

// Nobody could tell when it has been read.
TEST(AnnounceWire, EmptyMessageIsRejected) {
  Announce announce = TwoRegions();
  announce.length = 0;
  EXPECT_TRUE(IsMalformed(EncodeAnnounce(announce)));
}

TEST(AnnounceWire, EncodeThenParseIsIdentity) {
  Mutator random(3);
  for (int i = 0; i < 2000; ++i) {
    Announce announce;
    announce.id = random.Below(~uint64_t{0});
    announce.length = 1 + random.Below(~uint64_t{0} - 1);
    for (uint64_t n = 1 + random.Below(2); n > 0; --n) {
      announce.regions.push_back({random.Below(2) == 1,
                                  random.Below(~uint64_t{0}),
                                  random.Below(~uint64_t{0})});
    }
    const std::string bytes = EncodeAnnounce(announce);
    absl::StatusOr<Announce> parsed = ParseAnnounce(AsSpan(bytes));
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(EncodeAnnounce(*parsed), bytes);
    EXPECT_EQ(parsed->length, announce.length);
  }
}

TEST(AnnounceWire, DamageIsRejectedOrMeansWhatItSays) {
  Mutator random(4);
  for (int i = 0; i < 20000; ++i) {
    const std::string bytes = random.Mutate(FromHex(kTwoRegions));
    absl::StatusOr<Announce> parsed = ParseAnnounce(AsSpan(bytes));
    if (!parsed.ok()) continue;
    EXPECT_EQ(EncodeAnnounce(*parsed), bytes);
  }
}

}  // namespace
}  // namespace wire
}  // namespace penstock
