// Compiled once for each kind of vectors, by foreach_target.h.
#include "collectives/reduction/kernels.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "collectives/reduction/kernels.cc"
#include "hwy/foreach_target.h"
// foreach_target.h must be the first include.
#include "hwy/highway.h"
#include "tensor_service/formats-inl.h"

HWY_BEFORE_NAMESPACE();
namespace penstock::collectives::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using tensor::DType;
using tensor::HWY_NAMESPACE::BF16;
using tensor::HWY_NAMESPACE::F16;
using tensor::HWY_NAMESPACE::F32;
using tensor::HWY_NAMESPACE::F64;

// The operations on integers, with the interface of formats-inl.h.
template <typename T>
struct Integer {
  using Own = T;
  static constexpr size_t kBytes = sizeof(T);
  template <class D>
  static HWY_INLINE hn::Vec<D> Load(D d, const uint8_t* from) {
    return hn::LoadU(d, reinterpret_cast<const T*>(from));
  }
  template <class D>
  static HWY_INLINE void Store(D d, hn::Vec<D> v, uint8_t* to) {
    hn::StoreU(v, d, reinterpret_cast<T*>(to));
  }
};

// The operations on bools. Results are 0 or 1, even if a peer sends other
// bytes.
struct Boolean : Integer<uint8_t> {
  template <class D>
  static HWY_INLINE hn::Vec<D> Load(D d, const uint8_t* from) {
    return hn::Min(hn::LoadU(d, from), hn::Set(d, 1));
  }
};

struct Sum {
  template <class D, class V>
  static HWY_INLINE V Apply(D, V a, V b) {
    return hn::Add(a, b);
  }
};

struct Product {
  template <class D, class V>
  static HWY_INLINE V Apply(D d, V a, V b) {
    using T = hn::TFromD<D>;
    if constexpr (sizeof(T) == 1 || std::is_same_v<T, int64_t>) {
      return OfLanes(d, a, b);
    } else {
      return hn::Mul(a, b);
    }
  }

  // Multiplies lane by lane: most targets have no product of 8-bit and 64-bit
  // lanes.
  template <class D, class V>
  static HWY_INLINE V OfLanes(D d, V a, V b) {
    using T = hn::TFromD<D>;
    HWY_ALIGN T x[hn::MaxLanes(D())], y[hn::MaxLanes(D())];
    hn::Store(a, d, x);
    hn::Store(b, d, y);
    for (size_t i = 0; i < hn::Lanes(d); ++i) {
      x[i] = static_cast<T>(static_cast<uint64_t>(x[i]) *
                            static_cast<uint64_t>(y[i]));
    }
    return hn::Load(d, x);
  }
};

// Returns `least`, or an operand that is NaN.
template <class D, class V>
HWY_INLINE V OrNan(D, V a, V b, V least) {
  if constexpr (std::is_floating_point_v<hn::TFromD<D>>) {
    return hn::IfThenElse(hn::IsNaN(a), a,
                          hn::IfThenElse(hn::IsNaN(b), b, least));
  } else {
    return least;
  }
}

struct Least {
  template <class D, class V>
  static HWY_INLINE V Apply(D d, V a, V b) {
    return OrNan(d, a, b, hn::Min(a, b));
  }
};

struct Most {
  template <class D, class V>
  static HWY_INLINE V Apply(D d, V a, V b) {
    return OrNan(d, a, b, hn::Max(a, b));
  }
};

struct BitAnd {
  template <class D, class V>
  static HWY_INLINE V Apply(D, V a, V b) {
    return hn::And(a, b);
  }
};

struct BitOr {
  template <class D, class V>
  static HWY_INLINE V Apply(D, V a, V b) {
    return hn::Or(a, b);
  }
};

struct BitXor {
  template <class D, class V>
  static HWY_INLINE V Apply(D, V a, V b) {
    return hn::Xor(a, b);
  }
};

template <class Format, class Op>
class Loop {
 public:
  Loop(Sources sources, int divisor)
      : sources_(sources), divides_(divisor != 1), divisor_(divisor) {}

  void Run(uint8_t* into, size_t count) const {
    const hn::ScalableTag<T> d;
    const size_t step = hn::Lanes(d);
    size_t i = 0;
    for (; i + 4 * step <= count; i += 4 * step) Four(into, i);
    for (; i + step <= count; i += step) {
      Store(One(i * kBytes), into + i * kBytes);
    }
    if (i < count) Rest(into, i * kBytes, (count - i) * kBytes);
  }

 private:
  using T = typename Format::Own;
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  static constexpr size_t kBytes = Format::kBytes;

  // Reads all operands of an element before it writes the result, because
  // `into` may be one of the operands.
  HWY_INLINE void Four(uint8_t* into, size_t i) const {
    const D d;
    const size_t step = hn::Lanes(d) * kBytes;
    const size_t at = i * kBytes;
    const uint8_t* from = sources_.from[0] + at;
    V a = Format::Load(d, from);
    V b = Format::Load(d, from + step);
    V c = Format::Load(d, from + 2 * step);
    V e = Format::Load(d, from + 3 * step);
    for (size_t k = 1; k < sources_.number; ++k) {
      from = sources_.from[k] + at;
      a = Op::Apply(d, a, Format::Load(d, from));
      b = Op::Apply(d, b, Format::Load(d, from + step));
      c = Op::Apply(d, c, Format::Load(d, from + 2 * step));
      e = Op::Apply(d, e, Format::Load(d, from + 3 * step));
    }
    uint8_t* const to = into + at;
    Store(a, to);
    Store(b, to + step);
    Store(c, to + 2 * step);
    Store(e, to + 3 * step);
  }

  HWY_INLINE V One(size_t at) const {
    const D d;
    V result = Format::Load(d, sources_.from[0] + at);
    for (size_t k = 1; k < sources_.number; ++k) {
      result = Op::Apply(d, result, Format::Load(d, sources_.from[k] + at));
    }
    return result;
  }

  // Reduces the last elements, which are fewer than a vector's.
  void Rest(uint8_t* into, size_t at, size_t bytes) const {
    const D d;
    uint8_t buffer[HWY_MAX_BYTES] = {};
    std::memcpy(buffer, sources_.from[0] + at, bytes);
    V result = Format::Load(d, buffer);
    for (size_t k = 1; k < sources_.number; ++k) {
      std::memcpy(buffer, sources_.from[k] + at, bytes);
      result = Op::Apply(d, result, Format::Load(d, buffer));
    }
    Store(result, buffer);
    std::memcpy(into + at, buffer, bytes);
  }

  HWY_INLINE void Store(V v, uint8_t* to) const {
    const D d;
    if constexpr (std::is_floating_point_v<T>) {
      if (divides_) v = hn::Div(v, hn::Set(d, static_cast<T>(divisor_)));
    }
    Format::Store(d, v, to);
  }

  const Sources sources_;
  const bool divides_;
  const int divisor_;
};

struct Call {
  ReduceOp op;
  Sources sources;
  uint8_t* into;
  size_t count;
  int divisor;

  template <class Format, class Op>
  void Run() const {
    Loop<Format, Op>(sources, divisor).Run(into, count);
  }

  // Runs min, max and the bitwise operations.
  template <class Format>
  void OfBits() const {
    if (op == ReduceOp::kMin) return Run<Format, Least>();
    if (op == ReduceOp::kMax) return Run<Format, Most>();
    if (op == ReduceOp::kAnd) return Run<Format, BitAnd>();
    if (op == ReduceOp::kOr) return Run<Format, BitOr>();
    Run<Format, BitXor>();
  }

  template <typename T>
  void OfIntegers() const {
    if (op == ReduceOp::kSum) return Run<Integer<T>, Sum>();
    if (op == ReduceOp::kProduct) return Run<Integer<T>, Product>();
    OfBits<Integer<T>>();
  }

  template <class Format>
  void OfFloats() const {
    if (op == ReduceOp::kProduct) return Run<Format, Product>();
    if (op == ReduceOp::kMin) return Run<Format, Least>();
    if (op == ReduceOp::kMax) return Run<Format, Most>();
    Run<Format, Sum>();
  }
};

void ReduceAny(ReduceOp op, DType dtype, Sources sources, uint8_t* into,
               size_t count, int divisor) {
  const Call call = {op, sources, into, count, divisor};
  switch (dtype) {
    case DType::kF32:
      return call.OfFloats<F32>();
    case DType::kF64:
      return call.OfFloats<F64>();
    case DType::kF16:
      return call.OfFloats<F16>();
    case DType::kBF16:
      return call.OfFloats<BF16>();
    case DType::kInt8:
      return call.OfIntegers<int8_t>();
    case DType::kInt16:
      return call.OfIntegers<int16_t>();
    case DType::kInt32:
      return call.OfIntegers<int32_t>();
    case DType::kInt64:
      return call.OfIntegers<int64_t>();
    case DType::kUint8:
      return call.OfIntegers<uint8_t>();
    case DType::kBool:
      return call.OfBits<Boolean>();
  }
}

}  // namespace
}  // namespace penstock::collectives::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::collectives {
namespace {

HWY_EXPORT(ReduceAny);

}  // namespace

void ReduceVectors(ReduceOp op, tensor::DType dtype, Sources sources,
                   uint8_t* into, size_t count, int divisor) {
  HWY_DYNAMIC_DISPATCH(ReduceAny)
  (op, dtype, sources, into, count, divisor);
}

}  // namespace penstock::collectives
#endif  // HWY_ONCE
