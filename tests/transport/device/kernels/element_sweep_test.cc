// Rounds each of the 2^32 floats to 16 bits, and compares with Eigen.

#include <gtest/gtest.h>

#include <cstdint>

#include "tests/transport/device/kernels/reference.h"
#include "transport/device/kernels/element.h"

namespace penstock::device::kernels {
namespace {

// Tries all floats, and stops at the first for which `agrees` is false.
template <typename Agrees>
void ExpectOfEachFloat(Agrees agrees) {
  uint32_t bits = 0;
  do {
    if (!agrees(FloatOf(bits))) FAIL() << "float of bits " << bits;
  } while (++bits != 0);
}

TEST(ElementSweepTest, EachFloatIsRoundedToHalfAsByEigen) {
  ExpectOfEachFloat([](float value) {
    return FromFloat<Half>(value).bits == NearestHalf(value);
  });
}

TEST(ElementSweepTest, EachFloatIsRoundedToBfloat16AsByEigen) {
  ExpectOfEachFloat([](float value) {
    return FromFloat<Bfloat16>(value).bits == NearestBfloat16(value);
  });
}

}  // namespace
}  // namespace penstock::device::kernels
