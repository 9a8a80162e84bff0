#include "ps/gradients.h"

#include <cmath>
#include <cstddef>

#include "absl/strings/str_cat.h"

namespace penstock::ps {
namespace {

template <typename T>
absl::Status CheckFiniteAs(const tensor::Tensor& gradient) {
  absl::StatusOr<absl::Span<const T>> values = gradient.flat<T>();
  if (!values.ok()) return values.status();
  // x * 0 is 0 for a finite x and else NaN. One pass of sums without branches
  // is several times faster than a test of each element. There are eight sums,
  // as each addition to a single one would wait for the one before.
  constexpr size_t kLanes = 8;
  T sums[kLanes] = {};
  size_t at = 0;
  for (; at + kLanes <= values->size(); at += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      sums[lane] += (*values)[at + lane] * T{0};
    }
  }
  T sum = 0;
  for (; at < values->size(); ++at) sum += (*values)[at] * T{0};
  for (T lane : sums) sum += lane;
  if (sum == T{0}) return absl::OkStatus();
  for (size_t i = 0; i < values->size(); ++i) {
    if (!std::isfinite((*values)[i])) {
      return absl::InvalidArgumentError(
          absl::StrCat("element ", i, " is ", (*values)[i]));
    }
  }
  return absl::OkStatus();
}

template <typename T>
absl::StatusOr<tensor::Tensor> MeanAs(absl::Span<const tensor::Tensor> inputs) {
  absl::StatusOr<tensor::Tensor> mean =
      tensor::Tensor::Allocate(inputs[0].dtype(), inputs[0].shape());
  if (!mean.ok()) return mean.status();
  absl::StatusOr<absl::Span<T>> out = mean->mutable_flat<T>();
  if (!out.ok()) return out.status();
  const T share = T{1} / static_cast<T>(inputs.size());
  for (size_t k = 0; k < inputs.size(); ++k) {
    absl::StatusOr<absl::Span<const T>> in = inputs[k].flat<T>();
    if (!in.ok()) return in.status();
    const T* __restrict from = in->data();
    T* __restrict to = out->data();
    const size_t count = out->size();
    if (k == 0) {
      for (size_t i = 0; i < count; ++i) to[i] = from[i] * share;
    } else {
      for (size_t i = 0; i < count; ++i) to[i] += from[i] * share;
    }
  }
  return mean;
}

}  // namespace

absl::Status CheckFinite(const tensor::Tensor& gradient) {
  if (gradient.dtype() == tensor::DType::kF32) {
    return CheckFiniteAs<float>(gradient);
  }
  if (gradient.dtype() == tensor::DType::kF64) {
    return CheckFiniteAs<double>(gradient);
  }
  return absl::OkStatus();
}

absl::StatusOr<tensor::Tensor> Mean(absl::Span<const tensor::Tensor> inputs) {
  if (inputs.empty()) return absl::InvalidArgumentError("mean of nothing");
  for (const tensor::Tensor& input : inputs) {
    if (input.dtype() != inputs[0].dtype() ||
        input.shape() != inputs[0].shape()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "mean of ", inputs[0].ToString(), " and ", input.ToString()));
    }
  }
  if (inputs.size() == 1) return inputs[0];
  if (inputs[0].dtype() == tensor::DType::kF32) return MeanAs<float>(inputs);
  if (inputs[0].dtype() == tensor::DType::kF64) return MeanAs<double>(inputs);
  return absl::InvalidArgumentError(
      absl::StrCat("mean of ", inputs[0].ToString(), ": not a float type"));
}

}  // namespace penstock::ps
