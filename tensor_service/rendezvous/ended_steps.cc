#include "tensor_service/ended_steps.h"

#include "tensor_service/text.h"

namespace penstock::tensor {

absl::Status EndedSteps::Shortened(const absl::Status& reason) {
  if (reason.message().size() <= kMaxReasonBytes) return reason;
  return absl::Status(reason.code(), Prefix(reason.message(), kMaxReasonBytes));
}

void EndedSteps::End(uint64_t step, const absl::Status& reason) {
  if (capacity_ == 0 || reasons_.count(step) > 0) return;
  if (order_.size() == capacity_) {
    reasons_.erase(order_.front());
    order_.pop_front();
  }
  reasons_.emplace(step, Shortened(reason));
  order_.push_back(step);
}

void EndedSteps::EndAll(const absl::Status& reason) {
  if (all_.ok()) all_ = Shortened(reason);
}

absl::Status EndedSteps::Check(uint64_t step) const {
  const auto found = reasons_.find(step);
  return found == reasons_.end() ? all_ : found->second;
}

}  // namespace penstock::tensor
