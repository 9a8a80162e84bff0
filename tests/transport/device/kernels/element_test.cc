// Compares the conversions of elements with those of Eigen and of the
// processor.

#include "transport/device/kernels/element.h"

#include <gtest/gtest.h>
#include <immintrin.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "tests/transport/device/kernels/reference.h"

namespace penstock::device::kernels {
namespace {

constexpr uint32_t kHalves = 1 << 16;

uint16_t ToHalf(float value) { return FromFloat<Half>(value).bits; }
uint16_t ToBfloat16(float value) { return FromFloat<Bfloat16>(value).bits; }

bool SameValue(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) || BitsOf(a) == BitsOf(b);
}

// Calls `check` with each float at which rounding to 16 bits may change: each
// 16-bit number, the middle between neighbours, and the floats next to both.
// Between these floats, rounding is monotonic.
template <typename ValueOf, typename Check>
void ForEachEdge(uint16_t infinity, ValueOf value_of, Check check) {
  const float inf = std::numeric_limits<float>::infinity();
  for (uint16_t bits = 0; bits <= infinity; ++bits) {
    const float value = value_of(bits);
    // Uses the distance to the previous number for the largest number, because
    // the next number is infinite.
    const double next = bits + 1 < infinity ? value_of(bits + 1)
                                            : 2.0 * value - value_of(bits - 1);
    const float middle = static_cast<float>((value + next) / 2);
    for (float edge : {value, middle}) {
      for (float sign : {1.0f, -1.0f}) {
        check(sign * edge);
        check(sign * std::nextafter(edge, inf));
        check(sign * std::nextafter(edge, 0.0f));
      }
    }
  }
}

TEST(ElementTest, EachHalfIsTheFloatThatEigenSays) {
  for (uint32_t bits = 0; bits < kHalves; ++bits) {
    const uint16_t half = static_cast<uint16_t>(bits);
    ASSERT_TRUE(SameValue(ToFloat(Half{half}), ValueOfHalf(half))) << bits;
  }
}

TEST(ElementTest, EachBfloat16IsTheFloatThatEigenSays) {
  for (uint32_t bits = 0; bits < kHalves; ++bits) {
    const uint16_t brain = static_cast<uint16_t>(bits);
    ASSERT_TRUE(SameValue(ToFloat(Bfloat16{brain}), ValueOfBfloat16(brain)))
        << bits;
  }
}

TEST(ElementTest, EachNumberOf16BitsComesBackFromItsFloat) {
  for (uint32_t bits = 0; bits < kHalves; ++bits) {
    const uint16_t number = static_cast<uint16_t>(bits);
    const uint16_t magnitude = number & 0x7fff;
    ASSERT_EQ(ToHalf(ToFloat(Half{number})),
              magnitude > 0x7c00 ? 0x7e00 : number);
    ASSERT_EQ(ToBfloat16(ToFloat(Bfloat16{number})),
              magnitude > 0x7f80 ? 0x7fc0 : number);
  }
}

TEST(ElementTest, FloatsAreRoundedToHalfAsByEigenAtEachEdge) {
  ForEachEdge(0x7c00, ValueOfHalf, [](float value) {
    ASSERT_EQ(ToHalf(value), NearestHalf(value)) << value;
  });
}

TEST(ElementTest, FloatsAreRoundedToBfloat16AsByEigenAtEachEdge) {
  ForEachEdge(0x7f80, ValueOfBfloat16, [](float value) {
    ASSERT_EQ(ToBfloat16(value), NearestBfloat16(value)) << value;
  });
}

TEST(ElementTest, FloatsOfAnyBitsAreRoundedAsByEigen) {
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (int i = 0; i < 2000000; ++i) {
    const float value = FloatOf(random());
    ASSERT_EQ(ToHalf(value), NearestHalf(value)) << BitsOf(value);
    ASSERT_EQ(ToBfloat16(value), NearestBfloat16(value)) << BitsOf(value);
  }
}

__attribute__((target("f16c"))) void CompareWithProcessor() {
  for (uint32_t bits = 0; bits < kHalves; ++bits) {
    const uint16_t half = static_cast<uint16_t>(bits);
    ASSERT_TRUE(SameValue(ToFloat(Half{half}), _cvtsh_ss(half))) << bits;
  }
  ForEachEdge(
      0x7c00, ValueOfHalf, [](float value) __attribute__((target("f16c"))) {
        ASSERT_EQ(ToHalf(value), _cvtss_sh(value, 0)) << value;
      });
}

TEST(ElementTest, HalvesAreThoseOfTheProcessor) {
  if (!__builtin_cpu_supports("f16c")) {
    GTEST_SKIP() << "this processor has no conversions of f16";
  }
  CompareWithProcessor();
}

TEST(ElementTest, EachNanBecomesTheOne) {
  for (uint32_t bits : {0x7f800001u, 0x7fc00000u, 0x7fffffffu, 0xff800001u,
                        0xffc00000u, 0xffffffffu}) {
    EXPECT_EQ(ToHalf(FloatOf(bits)), 0x7e00);
    EXPECT_EQ(ToBfloat16(FloatOf(bits)), 0x7fc0);
    EXPECT_EQ(BitsOf(FromFloat<float>(FloatOf(bits))), 0x7fc00000u);
  }
}

// Tests values from the tables of IEEE 754-2008 and of bf16, by hand.
TEST(ElementTest, LimitsAreWhatTheStandardSays) {
  EXPECT_EQ(ToHalf(65504.0f), 0x7bff);
  EXPECT_EQ(ToHalf(65519.996f), 0x7bff);
  EXPECT_EQ(ToHalf(65520.0f), 0x7c00);
  EXPECT_EQ(ToHalf(-1e30f), 0xfc00);
  EXPECT_EQ(ToHalf(0x1p-14f), 0x0400);
  EXPECT_EQ(ToHalf(0x1p-24f), 0x0001);
  EXPECT_EQ(ToHalf(0x1p-25f), 0x0000);         // a tie, which goes to even
  EXPECT_EQ(ToHalf(0x1.000002p-25f), 0x0001);  // just above the tie
  EXPECT_EQ(ToHalf(0x1.8p-24f), 0x0002);       // a tie, which goes to even
  EXPECT_EQ(ToHalf(-0.0f), 0x8000);
  EXPECT_EQ(ToBfloat16(1.0f), 0x3f80);
  EXPECT_EQ(ToBfloat16(0x1.01p0f), 0x3f80);  // a tie, which goes to even
  EXPECT_EQ(ToBfloat16(0x1.03p0f), 0x3f82);  // a tie, which goes to even
  EXPECT_EQ(ToBfloat16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_EQ(ToBfloat16(0x1p-133f), 0x0001);
}

}  // namespace
}  // namespace penstock::device::kernels
