// The reference for the kernels' arithmetic, with independent code: Eigen's
// conversions, and sums in double.

#ifndef PENSTOCK_TESTS_TRANSPORT_DEVICE_KERNELS_REFERENCE_H_
#define PENSTOCK_TESTS_TRANSPORT_DEVICE_KERNELS_REFERENCE_H_

#include <cmath>
#include <cstdint>
#include <eigen3/Eigen/Core>

namespace penstock::device::kernels {

// Returns the bits of the f16 or bf16 nearest to `value`. Every NaN becomes the
// NaN that the kernels promise.
inline uint16_t NearestHalf(float value) {
  if (std::isnan(value)) return 0x7e00;
  return Eigen::half(value).x;
}

inline uint16_t NearestBfloat16(float value) {
  if (std::isnan(value)) return 0x7fc0;
  return Eigen::bfloat16(value).value;
}

inline float ValueOfHalf(uint16_t bits) {
  return static_cast<float>(Eigen::numext::bit_cast<Eigen::half>(bits));
}

inline float ValueOfBfloat16(uint16_t bits) {
  return static_cast<float>(Eigen::numext::bit_cast<Eigen::bfloat16>(bits));
}

// Returns sums and products of f32, computed in double and rounded to f32. The
// result is correctly rounded: a product is exact in double. A sum that is
// first rounded to the 53 bits of a double, more than twice 24 plus two, and
// then to 24 bits, equals the result of one rounding (Figueroa, "When is double
// rounding innocuous?").
inline float Sum(float a, float b) {
  return static_cast<float>(static_cast<double>(a) + static_cast<double>(b));
}

inline float Product(float a, float b) {
  return static_cast<float>(static_cast<double>(a) * static_cast<double>(b));
}

}  // namespace penstock::device::kernels

#endif  // PENSTOCK_TESTS_TRANSPORT_DEVICE_KERNELS_REFERENCE_H_
