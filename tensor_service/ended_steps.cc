#include "tensor_service/ended_steps.h"

#include "absl/strings/string_view.h"

namespace penstock::tensor {
absl::Status EndedSteps::Shortened(const absl::Status& reason) {
  const absl::string_view message = reason.message();
  if (message.size() <= kMaxReasonBytes) return reason;
  size_t end = kMaxReasonBytes;
  while (end > 0 && (message[end] & 0xc0) == 0x80) --end;
  return absl::Status(reason.code(), message.substr(0, end));
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
