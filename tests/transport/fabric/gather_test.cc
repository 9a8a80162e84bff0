#include "transport/fabric/gather.h"

#include <algorithm>
#include <cstdint>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace fabric {

bool operator==(const Stretch& a, const Stretch& b) {
  return a.in_place == b.in_place && a.first_piece == b.first_piece &&
         a.pieces == b.pieces && a.bytes == b.bytes;
}
std::ostream& operator<<(std::ostream& out, const Stretch& stretch) {
  return out << (stretch.in_place ? "in place" : "copied") << " from piece "
             << stretch.first_piece << ", " << stretch.pieces << " pieces, "
             << stretch.bytes << " bytes";
}

namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Returns a payload with a piece of each given size. The pieces have different
// bytes.
memory::Payload PayloadOf(const std::vector<size_t>& sizes) {
  memory::Payload payload;
  for (size_t i = 0; i < sizes.size(); ++i) {
    memory::Block block = memory::AllocateBlock(sizes[i]).value();
    for (size_t at = 0; at < sizes[i]; ++at) {
      block.data.get()[at] = static_cast<uint8_t>(37 * i + at + (at >> 8));
    }
    payload.Append(block.AsBytes());
  }
  return payload;
}

std::string TextOf(const memory::Payload& payload) {
  std::string text(payload.size(), '.');
  payload.CopyTo(reinterpret_cast<uint8_t*>(&text[0]));
  return text;
}

Stretch InPlace(size_t piece, size_t bytes) { return {true, piece, 1, bytes}; }
Stretch Copied(size_t first, size_t pieces, size_t bytes) {
  return {false, first, pieces, bytes};
}

TEST(DivideIntoParts, ReachablePiecesStayAndTheOthersAreCopiedTogether) {
  const memory::Payload payload = PayloadOf({10, 20, 5000, 6000, 30, 7000});
  EXPECT_THAT(
      DivideIntoParts(payload, {false, false, true, true, false, true}, 0, 100),
      ElementsAre(Copied(0, 2, 30), InPlace(2, 5000), InPlace(3, 6000),
                  Copied(4, 1, 30), InPlace(5, 7000)));
}

TEST(DivideIntoParts, WhatIsNotReachableIsOneCopyWhateverItsSize) {
  const memory::Payload payload = PayloadOf({100000, 1, 200000});
  EXPECT_THAT(DivideIntoParts(payload, {false, false, false}, 10, 100),
              ElementsAre(Copied(0, 3, 300001)));
}

TEST(DivideIntoParts, ReachablePiecesBelowTheLeastSizeAreCopied) {
  const memory::Payload payload = PayloadOf({99, 100, 99, 101});
  EXPECT_THAT(DivideIntoParts(payload, {true, true, true, true}, 100, 100),
              ElementsAre(Copied(0, 1, 99), InPlace(1, 100), Copied(2, 1, 99),
                          InPlace(3, 101)));
}

TEST(DivideIntoParts, SmallOnesAreCopiedWhenThereAreTooMany) {
  const memory::Payload payload = PayloadOf({100, 10000, 100, 100, 10000});
  const std::vector<bool> reachable(5, true);
  EXPECT_EQ(DivideIntoParts(payload, reachable, 100, 5).size(), 5u);
  EXPECT_THAT(DivideIntoParts(payload, reachable, 100, 4),
              ElementsAre(InPlace(0, 100), InPlace(1, 10000), Copied(2, 2, 200),
                          InPlace(4, 10000)));
  EXPECT_THAT(
      DivideIntoParts(payload, reachable, 0, 3),
      ElementsAre(Copied(0, 1, 100), InPlace(1, 10000), Copied(2, 3, 10200)));
}

TEST(DivideIntoParts, OnePartIsTheOnlyPieceOrACopyOfAll) {
  EXPECT_THAT(DivideIntoParts(PayloadOf({5000}), {true}, 0, 1),
              ElementsAre(InPlace(0, 5000)));
  EXPECT_THAT(DivideIntoParts(PayloadOf({5000}), {false}, 0, 1),
              ElementsAre(Copied(0, 1, 5000)));
  EXPECT_THAT(DivideIntoParts(PayloadOf({5000, 5000}), {true, true}, 0, 1),
              ElementsAre(Copied(0, 2, 10000)));
}

TEST(DivideIntoParts, NothingHasNoParts) {
  EXPECT_THAT(DivideIntoParts(memory::Payload(), {}, 0, 1), IsEmpty());
}

TEST(GatheredLayout, EachStretchIsAligned) {
  GatheredLayout layout;
  EXPECT_EQ(layout.size(), 0u);
  EXPECT_EQ(layout.Add(1), 0u);
  EXPECT_EQ(layout.size(), 1u);
  EXPECT_EQ(layout.Add(64), 64u);
  EXPECT_EQ(layout.Add(65), 128u);
  EXPECT_EQ(layout.Add(10), 256u);
  EXPECT_EQ(layout.size(), 266u);
}

TEST(GatheredBytes, AreThoseOfCopiedStretchesOnly) {
  EXPECT_EQ(GatheredBytes({}), 0u);
  EXPECT_EQ(GatheredBytes({InPlace(0, 5000)}), 0u);
  EXPECT_EQ(GatheredBytes({InPlace(0, 5000), Copied(1, 2, 100)}), 100u);
  EXPECT_EQ(
      GatheredBytes({Copied(0, 1, 1), InPlace(1, 5000), Copied(2, 2, 100)}),
      164u);
}

TEST(Gather, CopiesStretchesAndClearsWhatLiesBetween) {
  const memory::Payload payload = PayloadOf({10, 20, 5000, 30, 40, 5000, 7});
  const std::vector<Stretch> stretches = {Copied(0, 2, 30), InPlace(2, 5000),
                                          Copied(3, 2, 70), InPlace(5, 5000),
                                          Copied(6, 1, 7)};
  std::string copy(GatheredBytes(stretches) + 1, '!');
  EXPECT_TRUE(
      Gather(payload, stretches, reinterpret_cast<uint8_t*>(&copy[0])).ok());
  const std::string text = TextOf(payload);
  EXPECT_EQ(copy, text.substr(0, 30) + std::string(34, '\0') +
                      text.substr(5030, 70) + std::string(58, '\0') +
                      text.substr(10100, 7) + "!");
}

TEST(DivideIntoParts, AsManyStayAsThereMayBeParts) {
  const memory::Payload payload = PayloadOf(std::vector<size_t>(40, 5000));
  const std::vector<Stretch> stretches =
      DivideIntoParts(payload, std::vector<bool>(40, true), 4096, 32);
  EXPECT_EQ(stretches.size(), 32u);
  EXPECT_EQ(GatheredBytes(stretches), 9 * 5000u);
}

// Checks the rules for every division of a payload into parts. A seed chooses
// the payload.
class AnyDivision {
 public:
  explicit AnyDivision(uint32_t seed) : random_(seed) {
    std::vector<size_t> sizes(1 + Below(60));
    for (size_t& size : sizes) size = 1 + Below(size_t{1} << (1 + Below(15)));
    payload_ = PayloadOf(sizes);
    // Makes a piece reachable with probability 1 - 1 / one_in, or always if
    // one_in is 1.
    const size_t one_in = 1 + Below(4);
    for (size_t i = 0; i < sizes.size(); ++i) {
      reachable_.push_back(one_in == 1 || Below(one_in) != 0);
    }
    min_bytes_ = Below(2) == 0 ? 0 : Below(8192);
    max_parts_ = 1 + Below(Below(2) == 0 ? 5 : 80);
    stretches_ = DivideIntoParts(payload_, reachable_, min_bytes_, max_parts_);
  }

  void Check() const {
    EXPECT_LE(stretches_.size(), max_parts_);
    CheckOrder();
    CheckChoice();
    CheckCopies();
  }

 private:
  size_t Below(size_t limit) { return random_() % limit; }
  const memory::Bytes& piece(size_t i) const { return payload_.pieces()[i]; }

  // Checks that the parts contain all pieces, in order.
  void CheckOrder() const {
    size_t next = 0;
    for (const Stretch& stretch : stretches_) {
      EXPECT_EQ(stretch.first_piece, next);
      EXPECT_GT(stretch.pieces, 0u);
      size_t bytes = 0;
      for (size_t i = 0; i < stretch.pieces; ++i) bytes += piece(next++).size;
      EXPECT_EQ(stretch.bytes, bytes);
    }
    EXPECT_EQ(next, payload_.pieces().size());
  }

  void CheckChoice() const {
    bool after_copied = false;
    for (const Stretch& stretch : stretches_) {
      EXPECT_FALSE(after_copied && !stretch.in_place) << "two could be one";
      after_copied = !stretch.in_place;
      if (!stretch.in_place) continue;
      EXPECT_EQ(stretch.pieces, 1u);
      EXPECT_TRUE(reachable_[stretch.first_piece]);
      EXPECT_GE(stretch.bytes, min_bytes_);
    }
    CheckThatLargerOnesStay();
  }
  // Checks that no copied piece, if it was reachable, is larger than an
  // uncopied piece.
  void CheckThatLargerOnesStay() const {
    size_t smallest_in_place = SIZE_MAX;
    size_t largest_copied = 0;
    for (const Stretch& stretch : stretches_) {
      if (stretch.in_place) {
        smallest_in_place = std::min(smallest_in_place, stretch.bytes);
        continue;
      }
      for (size_t i = 0; i < stretch.pieces; ++i) {
        const size_t at = stretch.first_piece + i;
        if (!reachable_[at]) continue;
        largest_copied = std::max(largest_copied, piece(at).size);
      }
    }
    EXPECT_LE(largest_copied, smallest_in_place);
  }

  // Checks that the uncopied pieces, and those in the block of copies, make up
  // the payload.
  void CheckCopies() const {
    std::string block(GatheredBytes(stretches_), '!');
    EXPECT_TRUE(
        Gather(payload_, stretches_, reinterpret_cast<uint8_t*>(&block[0]))
            .ok());
    GatheredLayout layout;
    std::string all;
    for (const Stretch& stretch : stretches_) {
      if (stretch.in_place) {
        all += TextOf(memory::Payload(piece(stretch.first_piece)));
        continue;
      }
      const size_t begin = layout.Add(stretch.bytes);
      EXPECT_EQ(begin % 64, 0u);
      ASSERT_LE(begin + stretch.bytes, block.size());
      all += block.substr(begin, stretch.bytes);
    }
    EXPECT_EQ(layout.size(), block.size());
    EXPECT_TRUE(all == TextOf(payload_));
  }

  std::mt19937_64 random_;
  memory::Payload payload_;
  std::vector<bool> reachable_;
  size_t min_bytes_ = 0;
  size_t max_parts_ = 1;
  std::vector<Stretch> stretches_;
};

TEST(DivideIntoParts, AnyPayloadIsDividedWell) {
  for (uint32_t seed = 1; seed <= 500; ++seed) {
    AnyDivision(seed).Check();
    ASSERT_FALSE(testing::Test::HasFailure()) << "with seed " << seed;
  }
}

TEST(PartsOf, ArePiecesOfThatSizeAndWhatIsBetweenThem) {
  const std::vector<size_t> sizes = {1, 2, 9, 10, 3, 4, 12};
  const memory::Payload payload = PayloadOf(sizes);
  const auto parts = [&](size_t first, size_t pieces, size_t min_bytes,
                         size_t max_parts) {
    size_t bytes = 0;
    for (size_t i = 0; i < pieces; ++i) {
      bytes += sizes[first + i];
    }
    return PartsOf(payload, Copied(first, pieces, bytes), min_bytes, max_parts);
  };
  EXPECT_THAT(parts(0, 7, 9, 100), ElementsAre(3, 9, 10, 7, 12));
  EXPECT_THAT(parts(0, 7, 10, 100), ElementsAre(12, 10, 7, 12));
  EXPECT_THAT(parts(2, 2, 9, 100), ElementsAre(9, 10));
  EXPECT_THAT(parts(0, 7, 100, 100), ElementsAre(41));
  EXPECT_THAT(parts(0, 7, 10, 4), ElementsAre(12, 10, 7, 12));
  EXPECT_THAT(parts(0, 7, 10, 3), ElementsAre(41)) << "too many";
  EXPECT_THAT(parts(0, 1, 1, 1), ElementsAre(1));
}

TEST(AppendParts, LieNextToOneAnother) {
  RemoteRegion region;
  AppendParts({7, 1000, 6}, {1, 2, 3}, &region);
  ASSERT_EQ(region.size(), 3u);
  EXPECT_EQ(region[2].key, 7u);
  EXPECT_EQ(region[2].offset, 1003u);
  EXPECT_EQ(region[2].length, 3u);
}

}  // namespace
}  // namespace fabric
}  // namespace penstock
