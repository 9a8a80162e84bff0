// Tests bytes that one end exposes and the other end reads.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/conformance/conformance.h"

namespace penstock {
namespace fabric {
namespace conformance {
namespace {

TEST_P(Conformance, ReadCopiesThePartThatItNames) {
  const size_t chunk = capabilities().read_chunk_bytes;
  const std::string bytes = RandomBytes(several_chunks(), 1);
  const RemotePart part = ExposePart(bytes);
  const struct {
    size_t offset;
    size_t size;
  } kRanges[] = {{0, 1},         {0, chunk},         {1, chunk},
                 {chunk - 1, 2}, {chunk + 1, chunk}, {bytes.size() - 1, 1}};
  uint64_t cookie = 0;
  for (const auto& range : kRanges) {
    Target target(range.size);
    Read(Side::kB, part, range.offset, target.span(), ++cookie);
    Pump();
    EXPECT_TRUE(at_b().Succeeded(cookie)) << at_b().reads[cookie];
    EXPECT_TRUE(target.text() == bytes.substr(range.offset, range.size));
    EXPECT_TRUE(target.margins_are_untouched());
  }
}

TEST_P(Conformance, RegionIsReadInChunksByEitherEnd) {
  const size_t chunk = capabilities().read_chunk_bytes;
  for (size_t size : {size_t{1}, chunk - 1, chunk, chunk + 1, 7 * chunk + 3}) {
    for (Side owner : kSides) {
      const std::string bytes = RandomBytes(size, size);
      const Exposure exposure = Expose(owner, PayloadOf(bytes));
      const auto read = ReadWhole(Other(owner), exposure.region);
      ASSERT_TRUE(read.ok()) << read.status();
      EXPECT_TRUE(*read == bytes) << size;
      Release(owner, exposure.region);
    }
  }
}

TEST_P(Conformance, RegionOfManyPiecesIsOne) {
  const size_t chunk = capabilities().read_chunk_bytes;
  const std::string bytes = RandomBytes(several_chunks() + 20, 2);
  const memory::Payload payload =
      PayloadOf(bytes, {1, 2, 3, 0, 1, chunk, 1, chunk / 2});
  ASSERT_GT(payload.pieces().size(), 5u);
  const auto read = ReadWhole(Side::kB, Expose(Side::kA, payload).region);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(*read == bytes);
}

// Tests concurrent reads whose cookies are any numbers, in any order: the
// caller chooses them.
TEST_P(Conformance, ConcurrentReadsEndOnceEach) {
  const size_t chunk = capabilities().read_chunk_bytes;
  const size_t count = capabilities().max_reads;
  const std::string bytes = RandomBytes(count * chunk, 4);
  const RemotePart part = ExposePart(bytes);
  std::vector<Target> targets(count, Target(chunk));
  for (size_t i = 0; i < count; ++i) {
    Read(Side::kB, part, i * chunk, targets[i].span(), ~uint64_t{0} - i * 7);
  }
  for (int i = 0; i < 100 && !at_b().under_way.empty(); ++i) Pump();
  EXPECT_EQ(at_b().reads.size(), count);
  for (size_t i = 0; i < count; ++i) {
    EXPECT_TRUE(at_b().Succeeded(~uint64_t{0} - i * 7));
    EXPECT_TRUE(targets[i].text() == bytes.substr(i * chunk, chunk));
    EXPECT_TRUE(targets[i].margins_are_untouched());
  }
  EXPECT_TRUE(at_a().IsSilent());
}

TEST_P(Conformance, ReadFromWithinTheEndOfAnotherSucceeds) {
  const std::string bytes = RandomBytes(100, 5);
  const RemotePart part = ExposePart(bytes);
  Target target(bytes.size());
  at_b().on_read_done = [&](uint64_t cookie) {
    const uint64_t next = cookie + 1;
    if (next == bytes.size()) return;
    Read(Side::kB, part, next, target.span().subspan(next, 1), next);
  };
  Read(Side::kB, part, 0, target.span().first(1), 0);
  Pump();
  EXPECT_EQ(at_b().reads.size(), bytes.size());
  EXPECT_TRUE(target.text() == bytes);
}

// Tests that nobody writes to a destination after its read has ended. The
// session then hands the memory to the application.
TEST_P(Conformance, DestinationIsNotWrittenToAfterTheReadsEnd) {
  const size_t size = capabilities().read_chunk_bytes;
  const RemotePart part = ExposePart(RandomBytes(size, 6));
  std::string into(size, '.');
  at_b().on_read_done = [&](uint64_t) { into.assign(size, 'x'); };
  Read(Side::kB, part, 0, {reinterpret_cast<uint8_t*>(&into[0]), into.size()},
       1);
  Pump();
  ASSERT_TRUE(at_b().Succeeded(1));
  ASSERT_NO_FATAL_FAILURE(ExpectAlive());
  EXPECT_TRUE(into == std::string(size, 'x'));
}

TEST_P(Conformance, RegionsAreKeptApart) {
  std::vector<std::string> bytes;
  std::vector<Exposure> exposures;
  for (uint32_t i = 0; i < 20; ++i) {
    bytes.push_back(RandomBytes(500 + i, i));
    exposures.push_back(Expose(Side::kA, PayloadOf(bytes.back())));
  }
  for (size_t i = 0; i < 20; i += 2) a()->Withdraw(exposures[i].region);
  for (size_t i = 19; i < 20; i -= 2) {
    const auto read = ReadWhole(Side::kB, exposures[i].region);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_TRUE(*read == bytes[i]) << i;
  }
}

TEST_P(Conformance, RegionCanBeReadAgainUntilItIsWithdrawn) {
  const std::string bytes = RandomBytes(several_chunks(), 8);
  const Exposure exposure = Expose(Side::kA, PayloadOf(bytes));
  for (int i = 0; i < 3; ++i) {
    const auto read = ReadWhole(Side::kB, exposure.region);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_TRUE(*read == bytes);
  }
}

TEST_P(Conformance, PacketsPassBesideReads) {
  const std::string bytes = RandomBytes(several_chunks(), 9);
  const RemotePart part = ExposePart(bytes);
  Target target(capabilities().read_chunk_bytes);
  ASSERT_TRUE(Send(Side::kB, "before"));
  Read(Side::kB, part, 0, target.span(), 1);
  ASSERT_NO_FATAL_FAILURE(SendSurely(Side::kB, "after"));
  ASSERT_NO_FATAL_FAILURE(SendSurely(Side::kA, "meanwhile"));
  Pump();
  EXPECT_EQ(at_a().packets, (std::vector<std::string>{"before", "after"}));
  EXPECT_EQ(at_b().packets, std::vector<std::string>{"meanwhile"});
  EXPECT_TRUE(at_b().Succeeded(1));
}

}  // namespace
}  // namespace conformance
}  // namespace fabric
}  // namespace penstock
