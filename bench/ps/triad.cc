// Computes the triads. foreach_target.h compiles this file once for each vector
// instruction set.
#include "bench/ps/triad.h"

#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/ps/triad.cc"
#include "hwy/foreach_target.h"
// Names this file for foreach_target.h. Must precede the other includes.
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace penstock::bench::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <bool kStreamed>
void Run(const float* b, const float* c, float x, float* a, size_t count) {
  const hn::ScalableTag<float> d;
  const auto factor = hn::Set(d, x);
  for (size_t i = 0; i < count; i += hn::Lanes(d)) {
    const auto v = hn::MulAdd(factor, hn::Load(d, c + i), hn::Load(d, b + i));
    if (kStreamed) {
      hn::Stream(v, d, a + i);
    } else {
      hn::Store(v, d, a + i);
    }
  }
  if (kStreamed) hwy::FlushStream();
}

void Cached(const float* b, const float* c, float x, float* a, size_t count) {
  Run<false>(b, c, x, a, count);
}

void Streamed(const float* b, const float* c, float x, float* a, size_t count) {
  Run<true>(b, c, x, a, count);
}

}  // namespace
}  // namespace penstock::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::bench {
namespace {

HWY_EXPORT(Cached);
HWY_EXPORT(Streamed);

}  // namespace

void Triad(const float* b, const float* c, float x, float* a, size_t count) {
  HWY_DYNAMIC_DISPATCH(Cached)(b, c, x, a, count);
}

void StreamedTriad(const float* b, const float* c, float x, float* a,
                   size_t count) {
  HWY_DYNAMIC_DISPATCH(Streamed)(b, c, x, a, count);
}

}  // namespace penstock::bench
#endif  // HWY_ONCE
