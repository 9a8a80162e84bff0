#include "ps/random/philox.h"

#include <gtest/gtest.h>

#include <array>

#include "ps/random/mix.h"

namespace penstock::ps {
namespace {

using Words = std::array<uint32_t, 4>;

// Tests the vectors that the authors of Philox publish (Random123,
// kat_vectors).
TEST(PhiloxTest, GivesThePublishedWords) {
  EXPECT_EQ(Philox({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(Philox({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                   {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// Tests published constants: 0xcbf29ce484222325 is FNV-1a of "",
// 0xaf63dc4c8601ec8c is FNV-1a of "a", and 0xe220a8397b1dcdaf is SplitMix64's
// first output for state 0: Mix(0). Each seed below equals the hash of its
// name, so both keys are Mix(0).
TEST(KeyOfTest, IsTheMixedHashOfTheName) {
  EXPECT_EQ(Mix(0), 0xe220a8397b1dcdafu);
  EXPECT_EQ(KeyOf(0xcbf29ce484222325, ""), (PhiloxKey{0x7b1dcdaf, 0xe220a839}));
  EXPECT_EQ(KeyOf(0xaf63dc4c8601ec8c, "a"),
            (PhiloxKey{0x7b1dcdaf, 0xe220a839}));
}

}  // namespace
}  // namespace penstock::ps
