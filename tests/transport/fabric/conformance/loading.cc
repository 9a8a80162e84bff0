// Tests exposed memory that is used in place.

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/transport/fabric/conformance/conformance.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace fabric {
namespace conformance {
namespace {

class ConformanceLoading : public Conformance {
 protected:
  // Returns the loaded bytes: side A exposes `bytes`, side B loads them, and
  // side A withdraws the region.
  memory::Payload LoadAndWithdraw(const std::string& bytes) {
    const Exposure exposure = Expose(Side::kA, PayloadOf(bytes));
    auto loaded = b()->Load(exposure.region);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    a()->Withdraw(exposure.region);
    return loaded.ok() ? *std::move(loaded) : memory::Payload();
  }
  // Makes side A expose 40 MiB of other bytes, or fewer if its memory is full.
  void ExposeOther() {
    const memory::Payload other = PayloadOf(std::string(1024 * 1024, 'o'));
    for (int i = 0; i < 40; ++i) {
      auto exposure = a()->Expose(other, 1);
      if (!exposure.ok()) return;
      later_.push_back(*std::move(exposure));
    }
  }

  std::vector<Exposure> later_;
};

TEST_P(Conformance, LoadIsACapabilityOrRefused) {
  ASSERT_EQ(capabilities().can_load, GetParam().can_load);
  const Exposure exposure = Expose(Side::kA, PayloadOf("some bytes"));
  EXPECT_EQ(b()->Load(exposure.region).ok(), capabilities().can_load);
  ExpectAlive();
}

TEST_P(ConformanceLoading, BytesAreThoseOfAllPieces) {
  const std::string bytes = RandomBytes(100 * 1000, 1);
  for (Side owner : kSides) {
    const Exposure exposure =
        Expose(owner, PayloadOf(bytes, {1, 0, 7, 4096, 60 * 1000}));
    const auto loaded = end(Other(owner))->Load(exposure.region);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_TRUE(TextOf(*loaded) == bytes);
  }
}

// Tests that the peer sees the owner's memory itself.
TEST_P(ConformanceLoading, BytesAreNotCopied) {
  const Exposure exposure = Expose(Side::kA, PayloadOf("some bytes"));
  const auto loaded = b()->Load(exposure.region);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  ASSERT_EQ(exposure.stable.pieces().size(), 1u);
  const_cast<uint8_t*>(exposure.stable.pieces()[0].data)[0] = 'S';
  EXPECT_EQ(TextOf(*loaded), "Some bytes");
}

TEST_P(ConformanceLoading, BytesOutliveWithdraw) {
  const std::string bytes = RandomBytes(1024 * 1024, 2);
  const memory::Payload loaded = LoadAndWithdraw(bytes);
  Pump();
  ExposeOther();
  EXPECT_TRUE(TextOf(loaded) == bytes);
}

TEST_P(ConformanceLoading, BytesOutliveEitherEndAndBoth) {
  for (Side first : kSides) {
    ASSERT_NO_FATAL_FAILURE(Connect());
    const std::string bytes = RandomBytes(1024 * 1024, 3);
    const memory::Payload loaded = LoadAndWithdraw(bytes);
    Kill(first);
    if (first == Side::kB) ExposeOther();
    Pump();
    EXPECT_TRUE(TextOf(loaded) == bytes);
    Kill(Other(first));
    later_.clear();
    EXPECT_TRUE(TextOf(loaded) == bytes);
    Disconnect();
    EXPECT_TRUE(TextOf(loaded) == bytes);
  }
}

TEST_P(ConformanceLoading, AnyShareKeepsAllOfTheBytes) {
  const std::string bytes = RandomBytes(1024 * 1024, 4);
  memory::Bytes part = LoadAndWithdraw(bytes).pieces()[0].Part(1000, 1000);
  Pump();
  ExposeOther();
  EXPECT_TRUE(TextOf(part.span()) == bytes.substr(1000, 1000));
}

TEST_P(ConformanceLoading, BytesThatWereNeverReadCanBeLoadedMuchLater) {
  const std::string bytes = RandomBytes(1000, 5);
  const Exposure exposure = Expose(Side::kA, PayloadOf(bytes));
  for (int i = 0; i < 100; ++i) ASSERT_NO_FATAL_FAILURE(ExpectAlive());
  const auto loaded = b()->Load(exposure.region);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_TRUE(TextOf(*loaded) == bytes);
}

TEST_P(ConformanceLoading, MemoryComesBackWithTheLastShare) {
  const std::string bytes = RandomBytes(1024 * 1024, 6);
  for (int i = 0; i < 24; ++i) {
    const memory::Payload loaded = LoadAndWithdraw(bytes);
    ASSERT_TRUE(TextOf(loaded) == bytes);
    Pump();
  }
}

TEST_P(ConformanceLoading, RegionsThatAreNotThereAreRefused) {
  const RemoteRegion good = Expose(Side::kA, PayloadOf("some bytes")).region;
  std::vector<RemoteRegion> bad(5, good);
  bad[0][0].key ^= uint64_t{1} << 63;
  bad[1][0].offset = ~uint64_t{0};
  bad[2][0].length = ~uint64_t{0};
  bad[3][0].length = uint64_t{1} << 50;
  bad[4] = RemoteRegion{{0, 0, 1}};
  for (const RemoteRegion& region : bad) {
    EXPECT_FALSE(b()->Load(region).ok())
        << region[0].key << " " << region[0].offset;
  }
  const auto loaded = b()->Load(good);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(TextOf(*loaded), "some bytes");
}

// Allows an empty list, because some fabrics share no memory.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ConformanceLoading);
INSTANTIATE_TEST_SUITE_P(
    Fabric, ConformanceLoading,
    ::testing::ValuesIn(FabricsWhere(&FabricCase::can_load)), NameOf);

}  // namespace
}  // namespace conformance
}  // namespace fabric
}  // namespace penstock
