// The vectorised passes. foreach_target.h compiles this file once for each kind
// of vectors.
#include "ps/optim/elements.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ps/optim/elements.cc"
#include "hwy/foreach_target.h"
// foreach_target.h must be the first include.
#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "tensor_service/formats-inl.h"

HWY_BEFORE_NAMESPACE();
namespace penstock::ps::optim::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using tensor::DType;
using tensor::HWY_NAMESPACE::BF16;
using tensor::HWY_NAMESPACE::F16;
using tensor::HWY_NAMESPACE::F32;
using tensor::HWY_NAMESPACE::F64;

using D64 = hn::ScalableTag<double>;

// The vectors for a pass that computes on T and reads or writes elements of a
// format. Their number of lanes is that of the wider type.
template <typename T, class Format>
using VectorsOf = std::conditional_t<Format::kBytes == sizeof(double),
                                     hn::Rebind<T, D64>, hn::ScalableTag<T>>;

// The last elements, if they do not fill a vector.
struct Rest {
  uint8_t bytes[HWY_MAX_BYTES * 2] = {};
};

// Calls Pass::Run<Format>(arguments) with the format of `dtype`.
template <class Pass, class... Arguments>
auto ByFormat(DType dtype, Arguments... arguments) {
  switch (dtype) {
    case DType::kF64:
      return Pass::template Run<F64>(arguments...);
    case DType::kF16:
      return Pass::template Run<F16>(arguments...);
    case DType::kBF16:
      return Pass::template Run<BF16>(arguments...);
    default:
      return Pass::template Run<F32>(arguments...);
  }
}

template <typename T, Gather kHow>
struct GatherPass {
  template <class D>
  static HWY_INLINE void Put(D d, hn::Vec<D> v, T* sum) {
    hn::Store(kHow == Gather::kAdd ? hn::Add(hn::Load(d, sum), v) : v, d, sum);
  }

  template <class Format>
  static void Run(T* sum, const uint8_t* from, size_t count) {
    const VectorsOf<T, Format> d;
    const size_t lanes = hn::Lanes(d);
    size_t i = 0;
    for (; i + lanes <= count; i += lanes) {
      // Prefetch this gradient's next piece. The loop reads it only after the
      // pieces of all other gradients, too late for the hardware prefetcher.
      // Prefetching past the end has no effect.
      hwy::Prefetch(from + (i + kPiece) * Format::kBytes);
      Put(d, Format::Load(d, from + i * Format::kBytes), sum + i);
    }
    if (i == count) return;
    Rest rest;
    std::memcpy(rest.bytes, from + i * Format::kBytes,
                (count - i) * Format::kBytes);
    // Stores a whole vector, for which a Scratch has room.
    Put(d, Format::Load(d, rest.bytes), sum + i);
  }
};

template <typename T>
void GatherAs(T* sum, Gather how, DType dtype, const uint8_t* from,
              size_t count) {
  if (how == Gather::kAdd) {
    ByFormat<GatherPass<T, Gather::kAdd>>(dtype, sum, from, count);
  } else {
    ByFormat<GatherPass<T, Gather::kSet>>(dtype, sum, from, count);
  }
}

void GatherF32(float* sum, Gather how, DType dtype, const uint8_t* from,
               size_t count) {
  GatherAs(sum, how, dtype, from, count);
}

void GatherF64(double* sum, Gather how, DType dtype, const uint8_t* from,
               size_t count) {
  GatherAs(sum, how, dtype, from, count);
}

template <typename T>
void DivideIn(T* data, T by, size_t count) {
  const hn::ScalableTag<T> d;
  const auto divisor = hn::Set(d, by);
  for (size_t i = 0; i < count; i += hn::Lanes(d)) {
    hn::Store(hn::Div(hn::Load(d, data + i), divisor), d, data + i);
  }
}

void DivideF32(float* data, float by, size_t count) {
  DivideIn(data, by, count);
}
void DivideF64(double* data, double by, size_t count) {
  DivideIn(data, by, count);
}

struct NarrowPass {
  template <class Format>
  static void Run(const float* from, uint8_t* to, size_t count) {
    const hn::ScalableTag<typename Format::Own> d;
    const size_t lanes = hn::Lanes(d);
    const auto* bytes = reinterpret_cast<const uint8_t*>(from);
    size_t i = 0;
    for (; i + lanes <= count; i += lanes) {
      Format::Store(d, F32::Load(d, bytes + i * F32::kBytes),
                    to + i * Format::kBytes);
    }
    if (i == count) return;
    Rest rest;
    std::memcpy(rest.bytes, from + i, (count - i) * sizeof(float));
    Format::Store(d, F32::Load(d, rest.bytes), rest.bytes);
    std::memcpy(to + i * Format::kBytes, rest.bytes,
                (count - i) * Format::kBytes);
  }
};

void NarrowAll(const float* from, DType dtype, uint8_t* to, size_t count) {
  ByFormat<NarrowPass>(dtype, from, to, count);
}

void Stream(const uint8_t* from, uint8_t* to, size_t bytes) {
  const hn::ScalableTag<uint8_t> d;
  // The size of a cache line, and of the largest vector.
  constexpr size_t kLine = 64;
  const size_t lead = std::min(
      bytes, (kLine - reinterpret_cast<uintptr_t>(to) % kLine) % kLine);
  std::memcpy(to, from, lead);
  size_t i = lead;
  for (; i + hn::Lanes(d) <= bytes; i += hn::Lanes(d)) {
    hn::Stream(hn::LoadU(d, from + i), d, to + i);
  }
  std::memcpy(to + i, from + i, bytes - i);
  hwy::FlushStream();
}

struct FindPass {
  // The number of elements after which the result of the check is tested. A
  // multiple of each target's lanes.
  static constexpr size_t kStride = 4096;

  template <class Format, class D>
  static HWY_INLINE hn::Mask<D> Beyond(D d, hn::Vec<D> limit,
                                       const uint8_t* from) {
    return hn::Not(hn::Le(hn::Abs(Format::Load(d, from)), limit));
  }

  template <class Format>
  static size_t Run(const uint8_t* from, double limit, size_t count) {
    using T = typename Format::Own;
    const hn::ScalableTag<T> d;
    const size_t lanes = hn::Lanes(d);
    const auto most = hn::Set(d, static_cast<T>(std::min<double>(
                                     limit, std::numeric_limits<T>::max())));
    for (size_t begin = 0; begin < count; begin += kStride) {
      const size_t end = std::min(count, begin + kStride);
      auto any = hn::MaskFromVec(hn::Zero(d));
      size_t i = begin;
      for (; i + lanes <= end; i += lanes) {
        any = hn::Or(any, Beyond<Format>(d, most, from + i * Format::kBytes));
      }
      if (i < end) {
        Rest rest;
        std::memcpy(rest.bytes, from + i * Format::kBytes,
                    (end - i) * Format::kBytes);
        any = hn::Or(any, Beyond<Format>(d, most, rest.bytes));
      }
      if (!hn::AllFalse(d, any)) {
        return First<Format>(from, most, begin, end);
      }
    }
    return count;
  }

  // Returns the index of the first element beyond the limit. Requires that
  // there is one.
  template <class Format, class V>
  static size_t First(const uint8_t* from, V most, size_t begin, size_t end) {
    const hn::ScalableTag<typename Format::Own> d;
    for (size_t i = begin; i < end; ++i) {
      Rest rest;
      std::memcpy(rest.bytes, from + i * Format::kBytes, Format::kBytes);
      if (!hn::AllFalse(d, Beyond<Format>(d, most, rest.bytes))) return i;
    }
    return end;
  }
};

size_t Find(DType dtype, const uint8_t* data, double limit, size_t count) {
  return ByFormat<FindPass>(dtype, data, limit, count);
}

// Sums the squares of the elements. Adds element i to sum i % kSums, so that
// vectors of any length give the same bits.
struct SquaresPass {
  static constexpr size_t kSums = 32;
  static constexpr size_t kVectors = kSums / hn::MaxLanes(D64());

  template <class Format>
  static HWY_INLINE void Add(const uint8_t* from, hn::Vec<D64>* sums) {
    const D64 d;
    for (size_t k = 0; k < kVectors; ++k) {
      const auto v =
          Format::Load(d, from + k * hn::MaxLanes(d) * Format::kBytes);
      sums[k] = hn::Add(sums[k], hn::Mul(v, v));
    }
  }

  template <class Format>
  static double Run(const uint8_t* from, size_t count) {
    const D64 d;
    hn::Vec<D64> sums[kVectors];
    for (auto& sum : sums) sum = hn::Zero(d);
    size_t i = 0;
    for (; i + kSums <= count; i += kSums) {
      Add<Format>(from + i * Format::kBytes, sums);
    }
    uint8_t rest[kSums * sizeof(double)] = {};
    std::memcpy(rest, from + i * Format::kBytes, (count - i) * Format::kBytes);
    Add<Format>(rest, sums);
    alignas(64) double each[kSums];
    for (size_t k = 0; k < kVectors; ++k) {
      hn::Store(sums[k], d, each + k * hn::MaxLanes(d));
    }
    double total = 0;
    for (double sum : each) total += sum;
    return total;
  }
};

double Squares(DType dtype, const uint8_t* data, size_t count) {
  return ByFormat<SquaresPass>(dtype, data, count);
}

struct MultiplyPass {
  template <class Format>
  static void Run(uint8_t* data, double by, size_t count) {
    using T = typename Format::Own;
    const hn::ScalableTag<T> d;
    const size_t lanes = hn::Lanes(d);
    const auto factor = hn::Set(d, static_cast<T>(by));
    size_t i = 0;
    for (; i + lanes <= count; i += lanes) {
      uint8_t* const at = data + i * Format::kBytes;
      Format::Store(d, hn::Mul(Format::Load(d, at), factor), at);
    }
    if (i == count) return;
    Rest rest;
    uint8_t* const at = data + i * Format::kBytes;
    std::memcpy(rest.bytes, at, (count - i) * Format::kBytes);
    Format::Store(d, hn::Mul(Format::Load(d, rest.bytes), factor), rest.bytes);
    std::memcpy(at, rest.bytes, (count - i) * Format::kBytes);
  }
};

void MultiplyAll(DType dtype, uint8_t* data, double by, size_t count) {
  ByFormat<MultiplyPass>(dtype, data, by, count);
}

}  // namespace
}  // namespace penstock::ps::optim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::ps::optim {
namespace {

using tensor::DType;

HWY_EXPORT(GatherF32);
HWY_EXPORT(GatherF64);
HWY_EXPORT(DivideF32);
HWY_EXPORT(DivideF64);
HWY_EXPORT(NarrowAll);
HWY_EXPORT(Stream);
HWY_EXPORT(Find);
HWY_EXPORT(Squares);
HWY_EXPORT(MultiplyAll);

const uint8_t* Bytes(const void* data) {
  return static_cast<const uint8_t*>(data);
}

uint8_t* Bytes(void* data) { return static_cast<uint8_t*>(data); }

}  // namespace

bool IsFloating(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF64 || dtype == DType::kF16 ||
         dtype == DType::kBF16;
}

void GatherInto(float* sum, Gather how, DType dtype, const void* from,
                size_t count) {
  HWY_DYNAMIC_DISPATCH(GatherF32)(sum, how, dtype, Bytes(from), count);
}

void GatherInto(double* sum, Gather how, DType dtype, const void* from,
                size_t count) {
  HWY_DYNAMIC_DISPATCH(GatherF64)(sum, how, dtype, Bytes(from), count);
}

void Divide(float* data, float by, size_t count) {
  HWY_DYNAMIC_DISPATCH(DivideF32)(data, by, count);
}

void Divide(double* data, double by, size_t count) {
  HWY_DYNAMIC_DISPATCH(DivideF64)(data, by, count);
}

void Narrow(const float* from, DType dtype, void* to, size_t count) {
  HWY_DYNAMIC_DISPATCH(NarrowAll)(from, dtype, Bytes(to), count);
}

void CopyPastCaches(const void* from, void* to, size_t bytes) {
  HWY_DYNAMIC_DISPATCH(Stream)(Bytes(from), Bytes(to), bytes);
}

size_t FindBeyond(DType dtype, const void* data, double limit, size_t count) {
  return HWY_DYNAMIC_DISPATCH(Find)(dtype, Bytes(data), limit, count);
}

double SumOfSquares(DType dtype, const void* data, size_t count) {
  return HWY_DYNAMIC_DISPATCH(Squares)(dtype, Bytes(data), count);
}

void Multiply(DType dtype, void* data, double by, size_t count) {
  HWY_DYNAMIC_DISPATCH(MultiplyAll)(dtype, Bytes(data), by, count);
}

double ElementAt(DType dtype, const void* data, size_t index) {
  Scratch<double> element;
  GatherInto(element.data, Gather::kSet, dtype,
             Bytes(data) + index * tensor::ElementSize(dtype), 1);
  return element.data[0];
}

}  // namespace penstock::ps::optim
#endif  // HWY_ONCE
