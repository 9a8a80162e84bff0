// The vectorised passes. foreach_target.h compiles this file once for each kind
// of vectors.
#include "ps/compression/int8.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "ps/compression/lists.h"
#include "ps/compression/pieces.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ps/compression/int8.cc"
#include "hwy/foreach_target.h"
// foreach_target.h must be the first include.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace penstock::ps::compression::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Vectors with a limited number of lanes. Whole vectors fill half a block (DF:
// kHalf elements) and its counters (D64: kCounters).
using DF = hn::CappedTag<float, 16>;
using DI = hn::RebindToSigned<DF>;
using DU = hn::RebindToUnsigned<DF>;
using D64 = hn::CappedTag<uint64_t, 8>;

constexpr size_t kHalf = kBlock / 2;
// Each counter gives four words, for two elements each.
constexpr size_t kCounters = kHalf / 4;

// Writes the random words of a block, in the order of QuantizeBlocks().
#if HWY_TARGET == HWY_SCALAR

// Writes the words one by one. For machines whose vectors have one lane and
// thus no halves.
void FillWords(const Rounding& rounding, uint64_t block, uint32_t* words) {
  for (size_t j = 0; j < kCounters; ++j) {
    const uint64_t counter = block * kCounters + j;
    const auto four = Philox(
        {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32),
         static_cast<uint32_t>(rounding.step),
         static_cast<uint32_t>(rounding.step >> 32)},
        rounding.key);
    for (size_t w = 0; w < 4; ++w) words[w * kCounters + j] = four[w];
  }
}

#else

// A vector of counters, one per lane. Only the low half of each lane is used.
using V64 = hn::Vec<D64>;
struct Counters {
  V64 c0, c1, c2, c3;
};

HWY_INLINE Counters PhiloxOf(Counters c, PhiloxKey key) {
  const D64 d;
  const hn::Repartition<uint32_t, D64> halves;
  const auto factor0 = hn::Set(halves, kPhiloxFactors[0]);
  const auto factor1 = hn::Set(halves, kPhiloxFactors[1]);
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const V64 first = hn::MulEven(factor0, hn::BitCast(halves, c.c0));
    const V64 second = hn::MulEven(factor1, hn::BitCast(halves, c.c2));
    const V64 k0 = hn::Set(d, key[0]);
    const V64 k1 = hn::Set(d, key[1]);
    c = {hn::Xor(hn::Xor(hn::ShiftRight<32>(second), c.c1), k0), second,
         hn::Xor(hn::Xor(hn::ShiftRight<32>(first), c.c3), k1), first};
    for (int half = 0; half < 2; ++half) key[half] += kPhiloxSteps[half];
  }
  return c;
}

void FillWords(const Rounding& rounding, uint64_t block, uint32_t* words) {
  const D64 d;
  const hn::Rebind<uint32_t, D64> narrow;
  const uint64_t first = block * kCounters;
  for (size_t j = 0; j < kCounters; j += hn::Lanes(d)) {
    const Counters made =
        PhiloxOf({hn::Iota(d, first + j), hn::Set(d, first >> 32),
                  hn::Set(d, rounding.step), hn::Set(d, rounding.step >> 32)},
                 rounding.key);
    uint32_t* const to = words + j;
    hn::StoreU(hn::TruncateTo(narrow, made.c0), narrow, to);
    hn::StoreU(hn::TruncateTo(narrow, made.c1), narrow, to + kCounters);
    hn::StoreU(hn::TruncateTo(narrow, made.c2), narrow, to + 2 * kCounters);
    hn::StoreU(hn::TruncateTo(narrow, made.c3), narrow, to + 3 * kCounters);
  }
}

#endif  // HWY_SCALAR

float LargestOf(const float* values) {
  const DF d;
  auto largest = hn::Zero(d);
  for (size_t i = 0; i < kBlock; i += hn::Lanes(d)) {
    largest = hn::Max(largest, hn::Abs(hn::Load(d, values + i)));
  }
  return hn::GetLane(hn::MaxOfLanes(d, largest));
}

float ScaleFor(float largest) {
  float scale = largest / 127;
  if (scale * 127 > largest) scale = std::nextafter(scale, 0.0F);
  return std::max(scale, std::numeric_limits<float>::min());
}

// Rounds a vector of elements to integers, up or down by the low 16 bits of
// `random`.
HWY_INLINE void Round(const float* values, hn::Vec<DF> scale,
                      hn::Vec<DU> random, int8_t* to) {
  const DF d;
  const DI di;
  const hn::Rebind<int8_t, DI> bytes;
  const auto most = hn::Set(d, 127.0F);
  const auto y = hn::Min(
      most, hn::Max(hn::Neg(most), hn::Div(hn::Load(d, values), scale)));
  const auto below = hn::Floor(y);
  const auto h = hn::ConvertTo(d, hn::BitCast(di, random));
  const auto u =
      hn::Mul(hn::Add(h, hn::Set(d, 0.5F)), hn::Set(d, 1.0F / 65536));
  const auto up = hn::Lt(u, hn::Sub(y, below));
  const auto rounded = hn::Add(below, hn::IfThenElseZero(up, hn::Set(d, 1.0F)));
  hn::StoreU(hn::DemoteTo(bytes, hn::ConvertTo(di, rounded)), bytes, to);
}

void Quantize(const float* values, size_t blocks, uint64_t first,
              const Rounding& rounding, int8_t* elements, float* scales) {
  const DF d;
  const DU du;
  const size_t lanes = hn::Lanes(d);
  alignas(64) uint32_t words[kHalf];
  for (size_t b = 0; b < blocks; ++b) {
    const float* const block = values + b * kBlock;
    int8_t* const to = elements + b * kBlock;
    scales[b] = ScaleFor(LargestOf(block));
    const auto scale = hn::Set(d, scales[b]);
    FillWords(rounding, first + b, words);
    for (size_t i = 0; i < kHalf; i += lanes) {
      const auto both = hn::Load(du, words + i);
      Round(block + i, scale, hn::And(both, hn::Set(du, 0xFFFF)), to + i);
      Round(block + kHalf + i, scale, hn::ShiftRight<16>(both), to + kHalf + i);
    }
  }
}

void Dequantize(const int8_t* elements, const char* scales, size_t count,
                float* values) {
  const DF d;
  const DI di;
  const hn::Rebind<int8_t, DI> bytes;
  const size_t lanes = hn::Lanes(d);
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const auto scale = ElementAt<float>(scales, begin / kBlock);
    const auto factor = hn::Set(d, scale);
    const size_t end = std::min(count, begin + kBlock);
    size_t i = begin;
    for (; i + lanes <= end; i += lanes) {
      const auto wide = hn::PromoteTo(di, hn::LoadU(bytes, elements + i));
      hn::StoreU(hn::Mul(hn::ConvertTo(d, wide), factor), d, values + i);
    }
    for (; i < end; ++i) values[i] = static_cast<float>(elements[i]) * scale;
  }
}

}  // namespace
}  // namespace penstock::ps::compression::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::ps::compression {
namespace {

HWY_EXPORT(Quantize);
HWY_EXPORT(Dequantize);

}  // namespace

void QuantizeBlocks(const float* values, size_t blocks, uint64_t first,
                    const Rounding& rounding, int8_t* elements, float* scales) {
  HWY_DYNAMIC_DISPATCH(Quantize)
  (values, blocks, first, rounding, elements, scales);
}

void DequantizeBlocks(const void* elements, const void* scales, size_t count,
                      float* values) {
  HWY_DYNAMIC_DISPATCH(Dequantize)
  (static_cast<const int8_t*>(elements), static_cast<const char*>(scales),
   count, values);
}

}  // namespace penstock::ps::compression
#endif  // HWY_ONCE
