// The arithmetic of one element, for the host's compiler and for CUDA's. The
// kernels and ReduceOnHost() both use these functions.
//
// Each operation follows IEEE 754, rounded to nearest, ties to even, including
// subnormal numbers. Values are computed in f32. The conversion back to the
// element's type turns every NaN into the positive quiet NaN without payload,
// because processors produce different NaNs.

#ifndef PENSTOCK_TRANSPORT_DEVICE_KERNELS_ELEMENT_H_
#define PENSTOCK_TRANSPORT_DEVICE_KERNELS_ELEMENT_H_

#include <cstdint>
#include <cstring>

#ifdef __CUDACC__
#define PENSTOCK_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define PENSTOCK_HOST_DEVICE inline
#endif

namespace penstock::device::kernels {

// f16: 1 bit of sign, 5 of exponent, 10 of fraction.
struct Half {
  uint16_t bits;
};

// bf16: the upper half of an f32.
struct Bfloat16 {
  uint16_t bits;
};

PENSTOCK_HOST_DEVICE float FloatOf(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

PENSTOCK_HOST_DEVICE uint32_t BitsOf(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

// Returns a + b, rounded. A compiler must not fuse a multiplication with this
// addition: the fused operation would round only once. CUDA's intrinsics never
// fuse. Host code that uses this header needs -ffp-contract=off.
PENSTOCK_HOST_DEVICE float Add(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fadd_rn(a, b);
#else
  return a + b;
#endif
}

PENSTOCK_HOST_DEVICE float Multiply(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}

PENSTOCK_HOST_DEVICE float ToFloat(float value) { return value; }

PENSTOCK_HOST_DEVICE float ToFloat(Bfloat16 value) {
  return FloatOf(static_cast<uint32_t>(value.bits) << 16);
}

// Converts exactly. Devices have an instruction for this.
PENSTOCK_HOST_DEVICE float ToFloat(Half value) {
#ifdef __CUDA_ARCH__
  float result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(value.bits));
  return result;
#else
  const uint32_t sign = (value.bits & 0x8000u) << 16;
  const uint32_t magnitude = value.bits & 0x7fffu;
  // Adds 127 - 15 to the exponent, the difference of the biases. Infinity and
  // NaN need twice as much.
  const uint32_t rebias = (magnitude < 0x7c00 ? 112u : 224u) << 23;
  const uint32_t normal = (magnitude << 13) + rebias;
  // Computes in units of 2^-24, and so avoids subnormal f32: the processor may
  // treat subnormal numbers as zero for this thread.
  const uint32_t subnormal =
      BitsOf(static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-24f);
  return FloatOf(sign | (magnitude < 0x400 ? subnormal : normal));
#endif
}

// Rounds a sum to the type of its elements.
template <typename Element>
PENSTOCK_HOST_DEVICE Element FromFloat(float value);

template <>
PENSTOCK_HOST_DEVICE float FromFloat<float>(float value) {
  return value == value ? value : FloatOf(0x7fc00000);
}

template <>
PENSTOCK_HOST_DEVICE Bfloat16 FromFloat<Bfloat16>(float value) {
  const uint32_t bits = BitsOf(value);
  // Rounds to even: adds half of the last place, minus one bit if the last
  // place is even. A carry into the exponent is correct. Beyond the largest
  // number, the result is infinity.
  const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  return {static_cast<uint16_t>(value == value ? rounded : 0x7fc0)};
}

template <>
PENSTOCK_HOST_DEVICE Half FromFloat<Half>(float value) {
#ifdef __CUDA_ARCH__
  uint16_t rounded;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(rounded) : "f"(value));
#else
  const uint32_t sign = (BitsOf(value) >> 16) & 0x8000;
  const uint32_t magnitude = BitsOf(value) & 0x7fffffff;
  const uint32_t normal =
      (magnitude + 0xfff + ((magnitude >> 13) & 1) - (112u << 23)) >> 13;
  // Makes the addition round to a subnormal f16. Subnormal f16 numbers are
  // multiples of 2^-24. The f32 numbers just above 0.5 have the same distance.
  const uint32_t subnormal = BitsOf(FloatOf(magnitude) + 0.5f) - BitsOf(0.5f);
  const uint32_t finite = magnitude < 0x38800000 ? subnormal : normal;
  // Numbers from 65520 on are rounded to infinity.
  const uint32_t rounded = sign | (magnitude < 0x477ff000 ? finite : 0x7c00);
#endif
  return {static_cast<uint16_t>(value == value ? rounded : 0x7e00)};
}

}  // namespace penstock::device::kernels

#endif  // PENSTOCK_TRANSPORT_DEVICE_KERNELS_ELEMENT_H_
