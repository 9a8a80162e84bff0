#include <cmath>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "ps/optimizer.h"

namespace penstock::ps {
namespace {

template <typename T>
absl::Status Descend(T rate, const tensor::Tensor& gradient,
                     tensor::Tensor* variable) {
  absl::StatusOr<absl::Span<const T>> from = gradient.flat<T>();
  if (!from.ok()) return from.status();
  absl::StatusOr<absl::Span<T>> to = variable->mutable_flat<T>();
  if (!to.ok()) return to.status();
  const T* __restrict g = from->data();
  T* __restrict v = to->data();
  const size_t count = to->size();
  for (size_t i = 0; i < count; ++i) v[i] -= rate * g[i];
  return absl::OkStatus();
}

class Sgd : public Optimizer {
 public:
  explicit Sgd(double rate) : rate_(rate) {}

  absl::Status Supports(tensor::DType dtype) const override {
    if (dtype == tensor::DType::kF32 || dtype == tensor::DType::kF64) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        absl::StrCat("SGD trains f32 and f64, not ", tensor::Name(dtype)));
  }

  absl::Status Apply(const std::string& name, const tensor::Tensor& gradient,
                     tensor::Tensor* variable) override {
    if (gradient.dtype() != variable->dtype() ||
        gradient.shape() != variable->shape()) {
      return absl::InvalidArgumentError(
          absl::StrCat("apply to ", name, ": gradient is ", gradient.ToString(),
                       ", variable ", variable->ToString()));
    }
    if (variable->dtype() == tensor::DType::kF64) {
      return Descend<double>(rate_, gradient, variable);
    }
    return Descend<float>(static_cast<float>(rate_), gradient, variable);
  }

 private:
  const double rate_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Optimizer>> MakeSgd(double learning_rate) {
  if (!std::isfinite(learning_rate) || learning_rate <= 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "learning rate ", learning_rate, " is not finite and positive"));
  }
  return std::make_unique<Sgd>(learning_rate);
}

}  // namespace penstock::ps
