// The kernels. foreach_target.h compiles this file once for each kind of
// vectors.
#include "ps/optim/kernels.h"

#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ps/optim/kernels.cc"
#include "hwy/foreach_target.h"
// foreach_target.h must be the first include.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace penstock::ps::optim::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class D>
using ConstantsOf = Constants<hn::TFromD<D>>;

// The rules below change one vector of slots in place and return the new vector
// of values. The gradient is already clipped and includes its L2 part.

template <class D, class V = hn::Vec<D>>
struct Sgd {
  static constexpr size_t kSlots = 0;
  HWY_INLINE Sgd(D d, const ConstantsOf<D>& c) : rate(hn::Set(d, c.rate)) {}
  HWY_INLINE V Step(V g, V w, V* slots) const {
    return hn::Sub(w, hn::Mul(rate, g));
  }
  const V rate;
};

template <class D, class V = hn::Vec<D>>
struct Momentum {
  static constexpr size_t kSlots = 1;
  HWY_INLINE Momentum(D d, const ConstantsOf<D>& c)
      : rate(hn::Set(d, c.rate)), decay(hn::Set(d, c.decay1)) {}
  HWY_INLINE V Step(V g, V w, V* slots) const {
    slots[0] = hn::Add(hn::Mul(decay, slots[0]), g);
    return hn::Sub(w, hn::Mul(rate, slots[0]));
  }
  const V rate, decay;
};

template <class D, class V = hn::Vec<D>>
struct Nesterov {
  static constexpr size_t kSlots = 1;
  HWY_INLINE Nesterov(D d, const ConstantsOf<D>& c)
      : rate(hn::Set(d, c.rate)), decay(hn::Set(d, c.decay1)) {}
  HWY_INLINE V Step(V g, V w, V* slots) const {
    slots[0] = hn::Add(hn::Mul(decay, slots[0]), g);
    const V ahead = hn::Add(g, hn::Mul(decay, slots[0]));
    return hn::Sub(w, hn::Mul(rate, ahead));
  }
  const V rate, decay;
};

template <class D, class V = hn::Vec<D>>
struct Adagrad {
  static constexpr size_t kSlots = 1;
  HWY_INLINE Adagrad(D d, const ConstantsOf<D>& c)
      : rate(hn::Set(d, c.rate)), epsilon(hn::Set(d, c.epsilon)) {}
  HWY_INLINE V Step(V g, V w, V* slots) const {
    slots[0] = hn::Add(slots[0], hn::Mul(g, g));
    const V below = hn::Add(hn::Sqrt(slots[0]), epsilon);
    return hn::Sub(w, hn::Div(hn::Mul(rate, g), below));
  }
  const V rate, epsilon;
};

template <class D, class V = hn::Vec<D>>
struct RmsProp {
  static constexpr size_t kSlots = 1;
  HWY_INLINE RmsProp(D d, const ConstantsOf<D>& c)
      : rate(hn::Set(d, c.rate)),
        decay(hn::Set(d, c.decay2)),
        rest(hn::Set(d, c.rest2)),
        epsilon(hn::Set(d, c.epsilon)) {}
  HWY_INLINE V Step(V g, V w, V* slots) const {
    slots[0] = hn::Add(hn::Mul(decay, slots[0]), hn::Mul(rest, hn::Mul(g, g)));
    const V below = hn::Add(hn::Sqrt(slots[0]), epsilon);
    return hn::Sub(w, hn::Div(hn::Mul(rate, g), below));
  }
  const V rate, decay, rest, epsilon;
};

// Adam and AdamW. `keep` is the factor of AdamW's weight decay, and 1 for Adam.
template <class D, class V = hn::Vec<D>>
struct Adam {
  static constexpr size_t kSlots = 2;
  HWY_INLINE Adam(D d, const ConstantsOf<D>& c)
      : rate(hn::Set(d, c.rate)),
        keep(hn::Set(d, c.keep)),
        decay1(hn::Set(d, c.decay1)),
        rest1(hn::Set(d, c.rest1)),
        decay2(hn::Set(d, c.decay2)),
        rest2(hn::Set(d, c.rest2)),
        correct(hn::Set(d, c.correct)),
        epsilon(hn::Set(d, c.epsilon)) {}
  HWY_INLINE V Step(V g, V w, V* slots) const {
    slots[0] = hn::Add(hn::Mul(decay1, slots[0]), hn::Mul(rest1, g));
    slots[1] =
        hn::Add(hn::Mul(decay2, slots[1]), hn::Mul(rest2, hn::Mul(g, g)));
    const V below = hn::Add(hn::Mul(hn::Sqrt(slots[1]), correct), epsilon);
    return hn::Sub(hn::Mul(w, keep), hn::Div(hn::Mul(rate, slots[0]), below));
  }
  const V rate, keep, decay1, rest1, decay2, rest2, correct, epsilon;
};

template <class D, class V = hn::Vec<D>>
struct Ftrl {
  static constexpr size_t kSlots = 2;
  HWY_INLINE Ftrl(D d, const ConstantsOf<D>& c)
      : zero(hn::Zero(d)),
        inverse_rate(hn::Set(d, c.inverse_rate)),
        beta(hn::Set(d, c.beta)),
        lambda1(hn::Set(d, c.lambda1)),
        lambda2(hn::Set(d, c.lambda2)) {}
  HWY_INLINE V Step(V g, V w, V* slots) const {
    const V square = hn::Mul(g, g);
    const V before = hn::Sqrt(slots[1]);
    slots[1] = hn::Add(slots[1], square);
    const V root = hn::Sqrt(slots[1]);
    // Add the roots. sqrt(n + g^2) - sqrt(n) = g^2 / (sqrt(n + g^2) + sqrt(n))
    // avoids the cancellation in the difference of two nearly equal roots.
    const V both = hn::Add(root, before);
    const V grown =
        hn::IfThenElseZero(hn::Gt(both, zero), hn::Div(square, both));
    const V sigma = hn::Mul(grown, inverse_rate);
    slots[0] = hn::Sub(hn::Add(slots[0], g), hn::Mul(sigma, w));
    const V z = slots[0];
    const V below =
        hn::Add(hn::Mul(hn::Add(beta, root), inverse_rate), lambda2);
    // Find the elements that were trained. `below` is 0 only if the squares of
    // all gradients so far were 0.
    const auto trained =
        hn::And(hn::Gt(hn::Abs(z), lambda1), hn::Gt(below, zero));
    return hn::IfThenElseZero(
        trained, hn::Div(hn::Sub(hn::CopySign(lambda1, z), z), below));
  }
  const V zero, inverse_rate, beta, lambda1, lambda2;
};

// Loads and stores the elements of a vector: either a whole vector, or only its
// first element.
template <class D, typename T = hn::TFromD<D>, class V = hn::Vec<D>>
struct Whole {
  HWY_INLINE V Load(const T* from) const { return hn::LoadU(d, from); }
  HWY_INLINE void Store(V v, T* to) const { hn::StoreU(v, d, to); }
  const D d;
};

template <class D, typename T = hn::TFromD<D>, class V = hn::Vec<D>>
struct Part {
  HWY_INLINE V Load(const T* from) const {
    return hn::MaskedLoad(mask, d, from);
  }
  HWY_INLINE void Store(V v, T* to) const { hn::BlendedStore(v, mask, d, to); }
  const D d;
  const hn::Mask<D> mask;
};

template <class D, template <class, class> class RuleOf>
struct Loop {
  using T = hn::TFromD<D>;
  using V = hn::Vec<D>;
  using R = RuleOf<D, V>;

  HWY_INLINE Loop(D d, const Constants<T>& c)
      : clip(hn::Set(d, c.clip)), l2(hn::Set(d, c.l2)), rule(d, c) {}

  template <class Lanes>
  HWY_INLINE void At(const Lanes& lanes, const T* gradient, const T* value,
                     T* updated, T* const* slots, size_t i) const {
    const V w = lanes.Load(value + i);
    V g = lanes.Load(gradient + i);
    // The order of the operands matters: a NaN stays a NaN on x86.
    g = hn::Min(clip, hn::Max(hn::Neg(clip), g));
    g = hn::Add(g, hn::Mul(l2, w));
    V state[R::kSlots + 1];
    for (size_t k = 0; k < R::kSlots; ++k) state[k] = lanes.Load(slots[k] + i);
    const V result = rule.Step(g, w, state);
    for (size_t k = 0; k < R::kSlots; ++k) lanes.Store(state[k], slots[k] + i);
    lanes.Store(result, updated + i);
  }

  const V clip, l2;
  const R rule;
};

template <typename T, template <class, class> class RuleOf>
void Run(const Constants<T>& constants, const T* gradient, const T* value,
         T* updated, T* const* slots, size_t count) {
  using D = hn::ScalableTag<T>;
  const D d;
  const Loop<D, RuleOf> loop(d, constants);
  const size_t lanes = hn::Lanes(d);
  // Copy the slots' pointers, because the compiler cannot exclude that the
  // stores below change them.
  T* own[kMostSlots] = {};
  for (size_t k = 0; k < Loop<D, RuleOf>::R::kSlots; ++k) own[k] = slots[k];
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    loop.At(Whole<D>{d}, gradient, value, updated, own, i);
  }
  if (i == count) return;
#if HWY_TARGET <= HWY_AVX2
  loop.At(Part<D>{d, hn::FirstN(d, count - i)}, gradient, value, updated, own,
          i);
#else
  // Handles the remaining elements one by one. On some targets a masked load
  // also reads beyond the mask.
  using One = hn::CappedTag<T, 1>;
  const One one;
  const Loop<One, RuleOf> single(one, constants);
  for (; i < count; ++i) {
    single.At(Whole<One>{one}, gradient, value, updated, own, i);
  }
#endif
}

template <template <class, class> class RuleOf>
Kernels Both() {
  return {Run<float, RuleOf>, Run<double, RuleOf>};
}

Kernels Choose(Rule rule) {
  switch (rule) {
    case Rule::kSgd:
      return Both<Sgd>();
    case Rule::kMomentum:
      return Both<Momentum>();
    case Rule::kNesterov:
      return Both<Nesterov>();
    case Rule::kAdagrad:
      return Both<Adagrad>();
    case Rule::kRmsProp:
      return Both<RmsProp>();
    case Rule::kAdam:
    case Rule::kAdamW:
      return Both<Adam>();
    case Rule::kFtrl:
      return Both<Ftrl>();
  }
  return {};  // refused by Optimizer::Create()
}

}  // namespace
}  // namespace penstock::ps::optim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::ps::optim {
namespace {

HWY_EXPORT(Choose);

}  // namespace

Kernels KernelsOf(Rule rule) { return HWY_DYNAMIC_DISPATCH(Choose)(rule); }

}  // namespace penstock::ps::optim
#endif  // HWY_ONCE
