#include "ps/optim/gradient.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ps/optim/elements.h"

namespace penstock::ps::optim {
namespace {

using tensor::DType;

// The number of elements in one task. Large enough to make the task's overhead
// negligible, small enough that a delayed thread does not delay the others.
constexpr size_t kPart = 32 * kPiece;

size_t Parts(size_t count) { return (count + kPart - 1) / kPart; }

const uint8_t* At(const GradientView& gradient, size_t index) {
  return static_cast<const uint8_t*>(gradient.data) +
         index * tensor::ElementSize(gradient.dtype);
}

GradientView ReadOnly(const MutableGradientView& gradient) {
  return {gradient.dtype, gradient.data, gradient.count};
}

absl::Status CheckType(DType dtype) {
  if (IsFloating(dtype)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "a gradient is f32, f64, f16 or bf16, not ", tensor::Name(dtype)));
}

absl::Status CheckBelow(const GradientView& gradient, double limit,
                        const Workers& workers) {
  std::vector<size_t> found(Parts(gradient.count), gradient.count);
  workers.ForEach(found.size(), [&](size_t part) {
    const size_t begin = part * kPart;
    const size_t count = std::min(kPart, gradient.count - begin);
    const size_t at =
        FindBeyond(gradient.dtype, At(gradient, begin), limit, count);
    if (at < count) found[part] = begin + at;
  });
  const auto first = std::min_element(found.begin(), found.end());
  if (first == found.end() || *first == gradient.count) return absl::OkStatus();
  const double element = ElementAt(gradient.dtype, gradient.data, *first);
  return absl::InvalidArgumentError(absl::StrCat(
      "element ", *first, " is ", element,
      std::isfinite(element) ? absl::StrCat(", above ", limit) : ""));
}

// Returns the norm of all gradients, computed in parts.
double Norm(absl::Span<const MutableGradientView> gradients,
            const Workers& workers) {
  double total = 0;
  for (const MutableGradientView& each : gradients) {
    const GradientView gradient = ReadOnly(each);
    std::vector<double> squares(Parts(gradient.count));
    workers.ForEach(squares.size(), [&](size_t part) {
      const size_t begin = part * kPart;
      squares[part] = SumOfSquares(gradient.dtype, At(gradient, begin),
                                   std::min(kPart, gradient.count - begin));
    });
    for (double square : squares) total += square;
  }
  return std::sqrt(total);
}

// Returns the error for a norm that is not finite. The error names the cause.
absl::Status WhatIsNotFinite(absl::Span<const MutableGradientView> gradients,
                             const Workers& workers) {
  for (size_t i = 0; i < gradients.size(); ++i) {
    const absl::Status status = CheckBelow(
        ReadOnly(gradients[i]), std::numeric_limits<double>::max(), workers);
    if (!status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("gradient ", i, ": ", status.message()));
    }
  }
  return absl::InvalidArgumentError(
      "the gradients' norm is too large for an f64");
}

}  // namespace

absl::Status CheckGradient(const GradientView& gradient, DType value,
                           const Workers& workers) {
  absl::Status status = CheckType(gradient.dtype);
  if (!status.ok()) return status;
  return CheckBelow(gradient, value == DType::kF64 ? kMostInF64 : kMostInF32,
                    workers);
}

absl::StatusOr<double> ClipByGlobalNorm(
    double max_norm, absl::Span<const MutableGradientView> gradients,
    const Workers& workers) {
  if (!(max_norm > 0) || std::isinf(max_norm)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the norm to clip to is ", max_norm, ", not positive and finite"));
  }
  for (const MutableGradientView& gradient : gradients) {
    absl::Status status = CheckType(gradient.dtype);
    if (!status.ok()) return status;
  }
  const double norm = Norm(gradients, workers);
  if (!std::isfinite(norm)) return WhatIsNotFinite(gradients, workers);
  if (norm <= max_norm) return norm;
  for (const MutableGradientView& gradient : gradients) {
    workers.ForEach(Parts(gradient.count), [&](size_t part) {
      const size_t begin = part * kPart;
      Multiply(gradient.dtype,
               static_cast<uint8_t*>(gradient.data) +
                   begin * tensor::ElementSize(gradient.dtype),
               max_norm / norm, std::min(kPart, gradient.count - begin));
    });
  }
  return norm;
}

}  // namespace penstock::ps::optim
