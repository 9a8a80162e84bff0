#include "transport/device/kernels/reduce_on_host.h"

#include <algorithm>
#include <cstddef>

#include "transport/device/kernels/element.h"

namespace penstock::device::kernels {
namespace {

// The number of elements that are computed together. Their sums stay in the
// first-level cache, and each loop over them is vectorised.
constexpr size_t kPiece = 1024;

template <typename Element>
const Element* At(const void* array, uint64_t first) {
  return static_cast<const Element*>(array) + first;
}

template <typename Element>
void AddInputs(const Reduction& reduction, uint64_t first, size_t count,
               float* sums) {
  const Element* input = At<Element>(reduction.inputs[0], first);
  for (size_t i = 0; i < count; ++i) sums[i] = ToFloat(input[i]);
  for (size_t next = 1; next < reduction.inputs.size(); ++next) {
    input = At<Element>(reduction.inputs[next], first);
    for (size_t i = 0; i < count; ++i) {
      sums[i] = Add(sums[i], ToFloat(input[i]));
    }
  }
  if (reduction.operation != Operation::kMean) return;
  const float scale = ScaleOf(reduction);
  for (size_t i = 0; i < count; ++i) sums[i] = Multiply(sums[i], scale);
}

template <typename Element>
void AddScaled(const Reduction& reduction, uint64_t first, size_t count,
               float* sums) {
  const Element* input = At<Element>(reduction.inputs[0], first);
  const Element* old = At<Element>(reduction.output, first);
  for (size_t i = 0; i < count; ++i) {
    sums[i] =
        Add(ToFloat(old[i]), Multiply(reduction.scale, ToFloat(input[i])));
  }
}

template <typename Element>
void Reduce(const Reduction& reduction) {
  float sums[kPiece];
  for (uint64_t first = 0; first < reduction.count; first += kPiece) {
    const size_t count = std::min<uint64_t>(kPiece, reduction.count - first);
    if (reduction.operation == Operation::kScaledAdd) {
      AddScaled<Element>(reduction, first, count, sums);
    } else {
      AddInputs<Element>(reduction, first, count, sums);
    }
    Element* output = static_cast<Element*>(reduction.output) + first;
    for (size_t i = 0; i < count; ++i) output[i] = FromFloat<Element>(sums[i]);
  }
}

}  // namespace

absl::Status ReduceOnHost(const Reduction& reduction) {
  if (absl::Status status = Check(reduction); !status.ok()) return status;
  switch (reduction.type) {
    case ElementType::kF32:
      Reduce<float>(reduction);
      break;
    case ElementType::kF16:
      Reduce<Half>(reduction);
      break;
    case ElementType::kBf16:
      Reduce<Bfloat16>(reduction);
      break;
  }
  return absl::OkStatus();
}

}  // namespace penstock::device::kernels
