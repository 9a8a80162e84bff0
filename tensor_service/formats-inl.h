// Converts the wire's floating-point types to and from vectors of f32 and f64.
// Included once for each of Highway's targets, by sources that are compiled
// with -ffp-contract=off.

#if defined(PENSTOCK_TENSOR_SERVICE_FORMATS_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef PENSTOCK_TENSOR_SERVICE_FORMATS_INL_H_
#undef PENSTOCK_TENSOR_SERVICE_FORMATS_INL_H_
#else
#define PENSTOCK_TENSOR_SERVICE_FORMATS_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace penstock::tensor::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The formats of elements in memory. Each loads as many elements as a vector of
// D has f32 or f64 lanes. Each stores vectors of Own, the type that the format
// is computed in.

template <class D>
constexpr bool IsF64() {
  return sizeof(hn::TFromD<D>) == sizeof(double);
}

template <typename T>
HWY_INLINE const T* As(const uint8_t* bytes) {
  return reinterpret_cast<const T*>(bytes);
}

struct F64 {
  using Own = double;
  static constexpr size_t kBytes = 8;
  template <class D>
  static HWY_INLINE hn::Vec<D> Load(D d, const uint8_t* from) {
    if constexpr (IsF64<D>()) {
      return hn::LoadU(d, As<double>(from));
    } else {
      return hn::DemoteTo(d, Load(hn::Rebind<double, D>(), from));
    }
  }
  template <class D>
  static HWY_INLINE void Store(D d, hn::Vec<D> v, uint8_t* to) {
    hn::StoreU(v, d, reinterpret_cast<double*>(to));
  }
};

// Loads elements of a format that is exact in f32, and therefore in f64.
template <class Format, class D>
HWY_INLINE hn::Vec<D> LoadByF32(D d, const uint8_t* from) {
  if constexpr (IsF64<D>()) {
    return hn::PromoteTo(d, Format::LoadF32(hn::Rebind<float, D>(), from));
  } else {
    return Format::LoadF32(d, from);
  }
}

struct F32 {
  using Own = float;
  static constexpr size_t kBytes = 4;
  template <class D>
  static HWY_INLINE hn::Vec<D> Load(D d, const uint8_t* from) {
    return LoadByF32<F32>(d, from);
  }
  template <class D>
  static HWY_INLINE hn::Vec<D> LoadF32(D d, const uint8_t* from) {
    return hn::LoadU(d, As<float>(from));
  }
  template <class D>
  static HWY_INLINE void Store(D d, hn::Vec<D> v, uint8_t* to) {
    hn::StoreU(v, d, reinterpret_cast<float*>(to));
  }
};

// Convert between 16-bit elements and their bits in 32-bit lanes.
template <class D, class DU = hn::RebindToUnsigned<D>>
HWY_INLINE hn::Vec<DU> LoadBits(D d, const uint8_t* from) {
  const hn::Rebind<uint16_t, D> narrow;
  return hn::PromoteTo(DU(), hn::LoadU(narrow, As<uint16_t>(from)));
}

template <class D, class VU>
HWY_INLINE void StoreBits(D d, VU bits, uint8_t* to) {
  const hn::Rebind<uint16_t, D> narrow;
  hn::StoreU(hn::TruncateTo(narrow, bits), narrow,
             reinterpret_cast<uint16_t*>(to));
}

struct BF16 {
  using Own = float;
  static constexpr size_t kBytes = 2;
  template <class D>
  static HWY_INLINE hn::Vec<D> Load(D d, const uint8_t* from) {
    return LoadByF32<BF16>(d, from);
  }
  template <class D>
  static HWY_INLINE hn::Vec<D> LoadF32(D d, const uint8_t* from) {
    return hn::BitCast(d, hn::ShiftLeft<16>(LoadBits(d, from)));
  }
  template <class D>
  static HWY_INLINE void Store(D d, hn::Vec<D> v, uint8_t* to) {
    const hn::RebindToUnsigned<D> du;
    const auto bits = hn::BitCast(du, v);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
    const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7FFF)));
    // Keeps a NaN a NaN, because the shift below could drop all bits of its
    // fraction.
    const auto quiet = hn::Or(bits, hn::Set(du, 0x400000));
    const auto is_nan = hn::RebindMask(du, hn::IsNaN(v));
    StoreBits(d, hn::ShiftRight<16>(hn::IfThenElse(is_nan, quiet, rounded)),
              to);
  }
};

// IEEE binary16, converted with integers, after F. Giesen's half_to_float and
// float_to_half_fast3_rtne (public domain). Highway's own conversions of
// subnormal numbers, infinity and NaN differ between targets.
struct F16 {
  using Own = float;
  static constexpr size_t kBytes = 2;
  template <class D>
  static HWY_INLINE hn::Vec<D> Load(D d, const uint8_t* from) {
    return LoadByF32<F16>(d, from);
  }
  template <class D>
  static HWY_INLINE hn::Vec<D> LoadF32(D d, const uint8_t* from) {
    const hn::RebindToSigned<D> di;
    const auto half = hn::BitCast(di, LoadBits(d, from));
    const auto sign = hn::ShiftLeft<16>(hn::And(half, hn::Set(di, 0x8000)));
    const auto bits = hn::ShiftLeft<13>(hn::And(half, hn::Set(di, 0x7FFF)));
    const auto normal = hn::Add(bits, hn::Set(di, 112 << 23));
    const auto special = hn::Add(bits, hn::Set(di, 224 << 23));
    const auto magic = hn::Set(di, 113 << 23);
    const auto subnormal = hn::BitCast(
        di,
        hn::Sub(hn::BitCast(d, hn::Add(bits, magic)), hn::BitCast(d, magic)));
    auto result =
        hn::IfThenElse(hn::Lt(bits, hn::Set(di, 1 << 23)), subnormal, normal);
    result =
        hn::IfThenElse(hn::Lt(bits, hn::Set(di, 0x1F << 23)), result, special);
    return hn::BitCast(d, hn::Or(result, sign));
  }
  template <class D>
  static HWY_INLINE void Store(D d, hn::Vec<D> v, uint8_t* to) {
    const hn::RebindToSigned<D> di;
    const auto all = hn::BitCast(di, v);
    const auto bits = hn::And(all, hn::Set(di, 0x7FFFFFFF));
    const auto sign = hn::Xor(all, bits);
    const auto infinity = hn::Set(di, 255 << 23);
    const auto special = hn::IfThenElse(
        hn::Gt(bits, infinity), hn::Set(di, 0x7E00), hn::Set(di, 0x7C00));
    // Moves the bits to their place, and rounds, by an addition.
    const auto magic = hn::Set(di, ((127 - 15) + (23 - 10) + 1) << 23);
    const auto subnormal = hn::Sub(
        hn::BitCast(di, hn::Add(hn::BitCast(d, bits), hn::BitCast(d, magic))),
        magic);
    const auto odd = hn::And(hn::ShiftRight<13>(bits), hn::Set(di, 1));
    const auto rounded =
        hn::Add(hn::Add(bits, odd), hn::Set(di, 0xFFF - (112 << 23)));
    auto result = hn::IfThenElse(hn::Lt(bits, hn::Set(di, 113 << 23)),
                                 subnormal, hn::ShiftRight<13>(rounded));
    result = hn::IfThenElse(hn::Lt(bits, hn::Set(di, (127 + 16) << 23)), result,
                            special);
    const hn::RebindToUnsigned<D> du;
    StoreBits(d,
              hn::Or(hn::BitCast(du, result),
                     hn::ShiftRight<16>(hn::BitCast(du, sign))),
              to);
  }
};

}  // namespace penstock::tensor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
