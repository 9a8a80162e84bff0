// Tests reads of bytes that do not exist. A region comes from the peer, so each
// of its fields may be wrong.

#include <algorithm>
#include <cstdint>
#include <string>

#include "gtest/gtest.h"
#include "tests/transport/fabric/conformance/conformance.h"

namespace penstock {
namespace fabric {
namespace conformance {
namespace {

// A pair of ends. Side A exposes 1,000 bytes, and side B reads by a changed
// region.
class ConformanceBadReads : public Conformance {
 protected:
  static constexpr uint64_t kSize = 1000;

  RemotePart NewPart() {
    EXPECT_NO_FATAL_FAILURE(Connect());
    exposure_ = Expose(Side::kA, PayloadOf(RandomBytes(kSize, 1)));
    return exposure_.region[0];
  }
  // Expects that the read ends once, with an error. The connection must
  // survive, unless the fabric's header says otherwise.
  void ExpectRefused(const RemotePart& part, uint64_t offset, size_t size) {
    SCOPED_TRACE(::testing::Message()
                 << "[" << offset << ", +" << size << ") of region at "
                 << part.offset << " of " << part.length);
    Target target(size);
    Read(Side::kB, part, offset, target.span(), 5);
    Pump();
    EXPECT_TRUE(at_b().Failed(5)) << "a byte that is not in the region";
    EXPECT_TRUE(target.margins_are_untouched());
    if (harness_->survives_bad_reads()) ExpectAlive();
  }

  // Returns a size that one read may have and that is smaller than the whole
  // exposure.
  size_t one_read() const {
    return std::min<size_t>(capabilities().read_chunk_bytes, kSize / 2);
  }

  Exposure exposure_;
};

TEST_P(ConformanceBadReads, BeyondTheRegionFail) {
  for (uint64_t offset : {kSize, kSize - 1, kSize + 1, 2 * kSize}) {
    const RemotePart part = NewPart();
    ExpectRefused(part, offset, 2);
  }
  const RemotePart part = NewPart();
  ExpectRefused(part, kSize - one_read(), one_read() + 1);
}

TEST_P(ConformanceBadReads, AtOffsetsThatOverflowFail) {
  for (uint64_t before_end : {1, 2, 3, 1000}) {
    const RemotePart part = NewPart();
    ExpectRefused(part, ~uint64_t{0} - before_end + 1, 3);
  }
}

// Tests regions whose offset plus the read's offset overflows to a valid
// address.
TEST_P(ConformanceBadReads, OfRegionsThatOverflowFail) {
  for (uint64_t length : {kSize, ~uint64_t{0}}) {
    RemotePart part = NewPart();
    const uint64_t start = part.offset;
    part.offset = ~uint64_t{0};
    part.length = length;
    ExpectRefused(part, start + 1, 3);
  }
}

TEST_P(ConformanceBadReads, OfRegionsFarLargerThanWhatIsExposedFail) {
  RemotePart part = NewPart();
  part.length = uint64_t{1} << 50;
  ExpectRefused(part, uint64_t{1} << 49, 3);
}

// Tests that a read cannot go beyond its region, even if more bytes are
// exposed.
TEST_P(ConformanceBadReads, BeyondANarrowRegionFail) {
  RemotePart part = NewPart();
  part.length = 10;
  ExpectRefused(part, 8, 3);
}

TEST_P(ConformanceBadReads, OfAnUnknownKeyFail) {
  for (uint64_t flipped :
       {uint64_t{1} << 63, uint64_t{1} << 40, ~uint64_t{0}}) {
    RemotePart part = NewPart();
    part.key ^= flipped;
    ExpectRefused(part, 0, 3);
  }
}

TEST_P(ConformanceBadReads, OfTheReadersOwnRegionFail) {
  // Also exposes a part at the other end. The key of this part may equal the
  // key of side A's part, but the bytes differ.
  NewPart();
  const Exposure own = Expose(Side::kB, PayloadOf(RandomBytes(kSize, 2)));
  Target target(one_read());
  Read(Side::kB, own.region[0], 0, target.span(), 5);
  Pump();
  EXPECT_EQ(at_b().reads.size(), 1u);
  EXPECT_FALSE(target.text() == RandomBytes(kSize, 2).substr(0, one_read()));
  EXPECT_TRUE(target.margins_are_untouched());
}

// Reads a withdrawn region. The read must end with an error, or give the bytes
// that were exposed, as the fabric's header says. The read must never give
// bytes that were written there later.
TEST_P(ConformanceBadReads, OfAWithdrawnRegionNeverGiveOtherBytes) {
  if (!harness_->withdraw_ends_reads()) {
    GTEST_SKIP() << "this fabric stages what it exposes";
  }
  const RemotePart part = NewPart();
  a()->Withdraw({part});
  exposure_ = Exposure();
  Pump();
  for (uint32_t i = 0; i < 30; ++i) {
    const Exposure later = Expose(Side::kA, PayloadOf(RandomBytes(kSize, i)));
    Target target(one_read());
    Read(Side::kB, part, 0, target.span(), i);
    Pump();
    if (!at_b().Failed(i)) {
      EXPECT_TRUE(target.text() == RandomBytes(kSize, 1).substr(0, one_read()));
    }
    a()->Withdraw(later.region);
    if (!at_b().broken.empty()) {
      EXPECT_FALSE(harness_->survives_bad_reads());
      break;
    }
  }
}

// Withdraws the region while the request is under way.
TEST_P(ConformanceBadReads, OvertakenByWithdrawEndOnceAndNeverWrong) {
  const RemotePart part = NewPart();
  const size_t count = capabilities().max_reads;
  const size_t size = std::min(one_read(), kSize / count);
  Target target(kSize);
  for (size_t i = 0; i < count; ++i) {
    Read(Side::kB, part, i * size, target.span().subspan(i * size, size), i);
    if (i == count / 2) harness_->Step();
  }
  a()->Withdraw({part});
  exposure_ = Exposure();
  Pump();
  EXPECT_EQ(at_b().reads.size(), count);
  const std::string bytes = RandomBytes(kSize, 1);
  for (size_t i = 0; i < count; ++i) {
    if (!at_b().Succeeded(i)) continue;
    EXPECT_TRUE(target.text().substr(i * size, size) ==
                bytes.substr(i * size, size));
  }
  if (harness_->survives_bad_reads()) ExpectAlive();
}

INSTANTIATE_TEST_SUITE_P(Fabric, ConformanceBadReads,
                         ::testing::ValuesIn(Fabrics()), NameOf);

}  // namespace
}  // namespace conformance
}  // namespace fabric
}  // namespace penstock
