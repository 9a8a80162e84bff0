#include "ps/optim/dense.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "ps/optim/elements.h"

namespace penstock::ps::optim {
namespace {

using tensor::DType;

// The number of elements in one task; gradient.cc explains the choice.
constexpr size_t kPart = 32 * kPiece;

// The size in bytes from which a new value bypasses the caches. A larger value
// would be evicted before it is read. A store through the caches would also
// read each line first.
constexpr size_t kStreamedBytes = size_t{8} << 20;

bool IsNarrow(DType dtype) {
  return dtype == DType::kF16 || dtype == DType::kBF16;
}

DType ComputedIn(DType dtype) {
  return dtype == DType::kF64 ? DType::kF64 : DType::kF32;
}

template <typename T>
const T* ElementsAt(const void* data, size_t index) {
  return static_cast<const T*>(data) + index;
}

template <typename T>
T* ElementsAt(void* data, size_t index) {
  return static_cast<T*>(data) + index;
}

const uint8_t* BytesAt(const GradientView& gradient, size_t index) {
  return static_cast<const uint8_t*>(gradient.data) +
         index * tensor::ElementSize(gradient.dtype);
}

template <typename T>
bool CanBeReadAs(const GradientView& gradient) {
  return gradient.dtype == tensor::DTypeOf<T>::kValue &&
         reinterpret_cast<uintptr_t>(gradient.data) % alignof(T) == 0;
}

// Averages the gradients element by element, for elements [begin, begin +
// count). Returns `scratch` with the result. If there is only one gradient,
// returns the gradient's own memory.
template <typename T>
const T* MeanOf(absl::Span<const GradientView> gradients, size_t begin,
                size_t count, Scratch<T>* scratch) {
  if (gradients.size() == 1 && CanBeReadAs<T>(gradients[0])) {
    return ElementsAt<T>(gradients[0].data, begin);
  }
  Gather how = Gather::kSet;
  for (const GradientView& gradient : gradients) {
    GatherInto(scratch->data, how, gradient.dtype, BytesAt(gradient, begin),
               count);
    how = Gather::kAdd;
  }
  if (gradients.size() > 1) {
    Divide(scratch->data, static_cast<T>(gradients.size()), count);
  }
  return scratch->data;
}

// A thread's working memory, small enough for the L1 cache.
template <typename T>
struct Workspace {
  Scratch<T> mean;
  Scratch<T> updated;
};

bool IsStreamed(const DenseStep& step) {
  return step.updated != step.value &&
         step.count * tensor::ElementSize(step.dtype) >= kStreamedBytes;
}

template <typename T>
void ApplyPiece(const DenseStep& step, size_t begin, size_t count,
                Workspace<T>* work) {
  const T* const mean = MeanOf<T>(step.gradients, begin, count, &work->mean);
  T* slots[kMostSlots] = {};
  for (size_t k = 0; k < step.optimizer->slots().size(); ++k) {
    slots[k] = ElementsAt<T>(step.slots[k], begin);
  }
  const T* const value = ElementsAt<T>(step.value, begin);
  T* const updated = ElementsAt<T>(step.updated, begin);
  if (IsStreamed(step)) {
    step.optimizer->Apply(*step.scalars, mean, value, work->updated.data, slots,
                          count);
    CopyPastCaches(work->updated.data, updated, count * sizeof(T));
  } else {
    step.optimizer->Apply(*step.scalars, mean, value, updated, slots, count);
  }
}

void ApplyNarrowPiece(const DenseStep& step, size_t begin, size_t count,
                      Workspace<float>* work) {
  DenseStep wide = step;
  wide.dtype = DType::kF32;
  wide.value = wide.updated = step.slots.back();
  ApplyPiece<float>(wide, begin, count, work);
  Narrow(ElementsAt<float>(step.slots.back(), begin), step.dtype,
         ElementsAt<uint16_t>(step.updated, begin), count);
}

void ApplyPart(const DenseStep& step, size_t begin, size_t end) {
  union {
    Workspace<float> in_f32;
    Workspace<double> in_f64;
  };
  for (; begin < end; begin += kPiece) {
    const size_t count = std::min(kPiece, end - begin);
    if (step.dtype == DType::kF64) {
      ApplyPiece<double>(step, begin, count, &in_f64);
    } else if (step.dtype == DType::kF32) {
      ApplyPiece<float>(step, begin, count, &in_f32);
    } else {
      ApplyNarrowPiece(step, begin, count, &in_f32);
    }
  }
}

absl::Status Check(const DenseStep& step) {
  absl::Status status = CheckTrainable(step.dtype);
  if (!status.ok()) return status;
  if (step.gradients.empty()) {
    return absl::InvalidArgumentError("there is no gradient");
  }
  for (const GradientView& gradient : step.gradients) {
    status = CheckTrainable(gradient.dtype);
    if (!status.ok()) return status;
    if (gradient.count != step.count) {
      return absl::InvalidArgumentError(
          absl::StrCat("a gradient has ", gradient.count,
                       " elements, the value ", step.count));
    }
  }
  const size_t slots =
      step.optimizer->slots().size() + (IsNarrow(step.dtype) ? 1 : 0);
  if (step.slots.size() != slots) {
    return absl::InvalidArgumentError(
        absl::StrCat("there are ", step.slots.size(), " slots, to be ", slots));
  }
  return absl::OkStatus();
}

// One task: a range of the elements of one step.
struct Part {
  const DenseStep* step;
  size_t begin;
  size_t end;
};

std::vector<Part> Divided(absl::Span<const DenseStep> steps) {
  std::vector<Part> parts;
  for (const DenseStep& step : steps) {
    for (size_t begin = 0; begin < step.count; begin += kPart) {
      parts.push_back({&step, begin, std::min(step.count, begin + kPart)});
    }
  }
  return parts;
}

}  // namespace

std::vector<DenseSlot> DenseSlotsOf(const Optimizer& optimizer, DType dtype) {
  std::vector<DenseSlot> slots;
  if (!IsFloating(dtype)) return slots;
  for (const Slot& slot : optimizer.slots()) {
    slots.push_back({slot.name, slot.initial, ComputedIn(dtype)});
  }
  if (IsNarrow(dtype)) slots.push_back({kMaster, 0, DType::kF32});
  return slots;
}

absl::Status CheckTrainable(DType dtype) {
  if (IsFloating(dtype)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "f32, f64, f16 and bf16 can be trained, not ", tensor::Name(dtype)));
}

void InitializeSlot(const DenseSlot& description, DType dtype,
                    const void* value, size_t count, void* slot) {
  if (description.dtype == DType::kF64) {
    std::fill_n(static_cast<double*>(slot), count, description.initial);
  } else if (description.name != kMaster) {
    std::fill_n(static_cast<float*>(slot), count,
                static_cast<float>(description.initial));
  } else {
    Scratch<float> scratch;
    const GradientView narrow = {dtype, value, count};
    for (size_t begin = 0; begin < count; begin += kPiece) {
      const size_t part = std::min(kPiece, count - begin);
      GatherInto(scratch.data, Gather::kSet, dtype, BytesAt(narrow, begin),
                 part);
      std::copy_n(scratch.data, part, ElementsAt<float>(slot, begin));
    }
  }
}

absl::Status ApplyDense(absl::Span<const DenseStep> steps,
                        const Workers& workers) {
  for (size_t i = 0; i < steps.size(); ++i) {
    const absl::Status status = Check(steps[i]);
    if (!status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("step ", i, ": ", status.message()));
    }
  }
  const std::vector<Part> parts = Divided(steps);
  workers.ForEach(parts.size(), [&](size_t i) {
    ApplyPart(*parts[i].step, parts[i].begin, parts[i].end);
  });
  return absl::OkStatus();
}

}  // namespace penstock::ps::optim
