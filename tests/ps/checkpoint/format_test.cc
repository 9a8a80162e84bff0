#include "ps/checkpoint/format.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/escaping.h"
#include "ps/checkpoint/manifest.h"
#include "ps/checkpoint/names.h"

namespace penstock::ps::checkpoint {
namespace {

constexpr uint64_t kId = 0x1122334455667788;

std::string Hex(absl::string_view bytes) {
  return absl::BytesToHexString(bytes);
}

Footer SomeFooter() {
  Footer footer;
  footer.shard = 2;
  footer.id = kId;
  footer.parts.push_back(
      {TableKind::kSparse, 5, 32, 1000, 3, 0, 10, 4, 77, 0xabcdef});
  footer.clocks.push_back({65535, 9, 12});
  return footer;
}

TEST(FormatTest, AFileHeaderIsAsDocumented) {
  const std::string bytes = Encode(FileHeader{2, kId});
  EXPECT_EQ(Hex(bytes),
            "5053544b53485244"  // PSTKSHRD
            "01000000"
            "02000000"
            "8877665544332211"
            "4621357c84f9b898");
  const auto header = DecodeFileHeader(bytes);
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(header->shard, 2u);
  EXPECT_EQ(header->id, kId);
}

TEST(FormatTest, ABlockHeaderIsAsDocumented) {
  BlockHeader header;
  header.kind = BlockKind::kRows;
  header.table = 3;
  header.stream = 1;
  header.count = 7;
  header.first = 0x0102030405060708;
  header.number = 4;
  header.length = 5;
  header.checksum = 6;
  const std::string bytes = Encode(header, kId);
  EXPECT_EQ(Hex(bytes),
            "02000000030000000100000007000000"
            "0807060504030201"
            "0400000000000000"
            "0500000000000000"
            "0600000000000000"
            "2407f6f36345bed9");
  const auto decoded = DecodeBlockHeader(bytes, kId);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->first, header.first);
  // Expects that the same block from another attempt is rejected.
  EXPECT_TRUE(absl::IsDataLoss(DecodeBlockHeader(bytes, kId + 1).status()));
}

TEST(FormatTest, AFooterIsAsDocumented) {
  const std::string bytes = Encode(SomeFooter());
  EXPECT_EQ(Hex(bytes),
            "8877665544332211"
            "0200000000000000"
            "0100000000000000"
            "0100000000000000"
            "0200000005000000"
            "2000000000000000"
            "e803000000000000"
            "0300000000000000"
            "0000000000000000"
            "0a00000000000000"
            "0400000000000000"
            "4d00000000000000"
            "efcdab0000000000"
            "ffff000000000000"
            "0900000000000000"
            "0c00000000000000");
  EXPECT_EQ(bytes.size(), kFooterHeadBytes + kPartBytes + kClockBytes);
  const auto footer = DecodeFooter(bytes);
  ASSERT_TRUE(footer.ok()) << footer.status();
  EXPECT_EQ(Encode(*footer), bytes);
}

TEST(FormatTest, CountsThatDoNotFitTheirBytesAreRefused) {
  std::string bytes = Encode(SomeFooter());
  bytes[16 + 7] = '\x40';  // 2^62 parts
  EXPECT_TRUE(absl::IsDataLoss(DecodeFooter(bytes).status()));
  bytes = Encode(SomeFooter());
  EXPECT_TRUE(absl::IsDataLoss(DecodeFooter(bytes + "x").status()));
  EXPECT_TRUE(absl::IsDataLoss(DecodeFooter(bytes.substr(1)).status()));
  EXPECT_TRUE(absl::IsDataLoss(DecodeFooter("").status()));
}

TEST(FormatTest, ABlockOfAbsurdLengthIsRefusedThoughItsChecksumIsRight) {
  BlockHeader header;
  header.length = kMaxBlockBytes + 1;
  EXPECT_TRUE(
      absl::IsDataLoss(DecodeBlockHeader(Encode(header, kId), kId).status()));
}

TEST(FormatTest, ATrailerIsAsDocumented) {
  const std::string bytes = Encode(Trailer{1, 2, 3});
  EXPECT_EQ(Hex(bytes),
            "0100000000000000"
            "0200000000000000"
            "0300000000000000"
            "5053544b464f4f54");  // PSTKFOOT
  EXPECT_EQ(DecodeTrailer(bytes)->length, 2u);
  EXPECT_TRUE(absl::IsDataLoss(DecodeTrailer(bytes.substr(1)).status()));
}

TEST(FormatTest, AManifestIsAsDocumented) {
  Manifest manifest;
  manifest.attempt = {7, kId};
  manifest.model.tables.push_back(
      {"t", TableKind::kDense, tensor::DType::kF32, {2}, {}});
  manifest.shards.push_back({0, 100, 5});
  const auto bytes = Encode(manifest);
  ASSERT_TRUE(bytes.ok());
  EXPECT_EQ(Hex(*bytes),
            "5053544b4d414e49"  // PSTKMANI
            "01000000"
            "24000000"
            "d5df0f94cbe2dca2"
            "098877665544332211"        // id
            "1007"                      // step
            "2a0a0a017410011801220102"  // table
            "3a0b0864110500000000000000");
  const auto decoded = DecodeManifest(*bytes);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(*Encode(*decoded), *bytes);
}

TEST(NamesTest, AStepHasOneName) {
  EXPECT_EQ(StepFolder(1234), "step-0000001234");
  EXPECT_EQ(StepFolder(UINT64_MAX), "step-18446744073709551615");
  for (uint64_t step : {uint64_t{0}, uint64_t{1234}, UINT64_MAX}) {
    EXPECT_EQ(ParseStepFolder(StepFolder(step)), step);
  }
  for (const char* name :
       {"step-1234", "step-00000001234", "step-+000001234", "step- 000001234",
        "step-18446744073709551616", "step-", "step", "../step-0000001234",
        "step-0000001234/", "xstep-0000001234"}) {
    EXPECT_FALSE(ParseStepFolder(name).has_value()) << name;
  }
}

}  // namespace
}  // namespace penstock::ps::checkpoint
