// Tests payloads of many pieces, exposed in one part or in several.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>

#include "gtest/gtest.h"
#include "tests/transport/fabric/conformance/conformance.h"
#include "transport/memory/bytes.h"
#include "transport/memory/stable_memory.h"

namespace penstock {
namespace fabric {
namespace conformance {
namespace {

// A fixture with pieces of random sizes. A seed decides which pieces are in
// memory that the peer can reach, and which are on the heap.
class ConformanceParts : public Conformance {
 protected:
  static constexpr size_t kMaxPiece = 100 * 1024;

  memory::Payload RandomPayload(Side owner, int pieces) {
    memory::Payload payload;
    const bool mostly_small = random_() % 2 == 0;
    for (int i = 0; i < pieces; ++i) {
      const size_t size = mostly_small ? RandomSize(&random_, kMaxPiece - 1)
                                       : random_() % kMaxPiece;
      const std::string bytes = RandomBytes(size + 1, random_());
      payload.Append(random_() % 2 == 0 ? HeapCopy(bytes)
                                        : ReachableCopy(owner, bytes));
    }
    return payload;
  }
  memory::Bytes ReachableCopy(Side owner, const std::string& bytes) {
    const memory::Block block =
        harness_->AllocateReachable(owner, bytes.size());
    memcpy(block.data.get(), bytes.data(), bytes.size());
    return block.AsBytes();
  }

  // Expects that the stable copy and the peer's copy equal the payload.
  void ExpectRead(Side owner, const memory::Payload& payload,
                  size_t max_parts) {
    const Exposure exposure = Expose(owner, payload, max_parts);
    EXPECT_TRUE(TextOf(exposure.stable) == TextOf(payload));
    const auto read = ReadWhole(Other(owner), exposure.region);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_TRUE(*read == TextOf(payload));
    Release(owner, exposure.region);
  }
  void ExpectLoaded(Side owner, const memory::Payload& payload,
                    size_t max_parts) {
    const Exposure exposure = Expose(owner, payload, max_parts);
    const auto loaded = end(Other(owner))->Load(exposure.region);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    end(owner)->Withdraw(exposure.region);
    EXPECT_TRUE(TextOf(*loaded) == TextOf(payload));
    ASSERT_EQ(loaded->pieces().size(), exposure.region.size());
    for (size_t i = 0; i < exposure.region.size(); ++i) {
      EXPECT_EQ(loaded->pieces()[i].size, exposure.region[i].length);
    }
  }

  std::mt19937_64 random_;
};

TEST_P(ConformanceParts, OfManyPiecesAreAllOfThePayload) {
  for (uint32_t seed = 1; seed <= 4; ++seed) {
    random_.seed(seed);
    for (size_t max_parts : {1, 2, 5, 100}) {
      SCOPED_TRACE(::testing::Message()
                   << "seed " << seed << ", in " << max_parts << " parts");
      for (Side owner : kSides) {
        const memory::Payload payload = RandomPayload(owner, 40);
        ASSERT_NO_FATAL_FAILURE(ExpectRead(owner, payload, max_parts));
        if (!capabilities().can_load) continue;
        ASSERT_NO_FATAL_FAILURE(ExpectLoaded(owner, payload, max_parts));
      }
    }
  }
  ExpectAlive();
}

// Tests that a read cannot go beyond its part, even if more bytes are exposed
// next to it.
TEST_P(ConformanceParts, AreReadWithinTheirBoundsOnly) {
  const memory::Payload payload = RandomPayload(Side::kA, 10);
  const Exposure exposure = Expose(Side::kA, payload, 100);
  uint64_t cookie = 0;
  for (const RemotePart& part : exposure.region) {
    Target target(2);
    Read(Side::kB, part, part.length - 1, target.span(), ++cookie);
    Pump();
    EXPECT_TRUE(at_b().Failed(cookie)) << "a byte that is not in the part";
    if (!at_b().broken.empty()) break;
  }
  EXPECT_TRUE(at_b().broken.empty() || !harness_->survives_bad_reads());
}

// Tests that the fabric reads into the program's own memory, and writes no byte
// outside.
TEST_P(ConformanceParts, AreReadIntoMemoryOfTheProgram) {
  for (Side owner : kSides) {
    Endpoint* const reader = end(Other(owner));
    const std::string text = RandomBytes(kMaxPiece, 5);
    Target target(text.size());
    const auto declared =
        memory::StableMemory::Declare(target.span().data(), text.size());
    ASSERT_TRUE(declared.ok()) << declared.status();
    const auto prepared =
        reader->PrepareToRead({target.span().data(), text.size()});
    ASSERT_EQ(prepared != nullptr, harness_->reads_into_memory());
    const Exposure exposure = Expose(owner, memory::Payload(HeapCopy(text)), 1);
    uint64_t cookie = 100;
    for (size_t at = 0; at < text.size();) {
      const size_t size =
          std::min(text.size() - at, capabilities().max_read_bytes());
      Read(Other(owner), exposure.region[0], at,
           target.span().subspan(at, size), ++cookie);
      Pump();
      at += size;
    }
    EXPECT_TRUE(target.text() == text);
    EXPECT_TRUE(target.margins_are_untouched());
    Release(owner, exposure.region);
  }
  ExpectAlive();
}

INSTANTIATE_TEST_SUITE_P(Fabric, ConformanceParts,
                         ::testing::ValuesIn(Fabrics()), NameOf);

}  // namespace
}  // namespace conformance
}  // namespace fabric
}  // namespace penstock
