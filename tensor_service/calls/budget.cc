#include "tensor_service/budget.h"

#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"

namespace penstock::tensor {

struct Budget::Count {
  absl::Mutex mu;
  size_t bytes ABSL_GUARDED_BY(mu) = 0;
};

Budget::Hold::Hold(std::shared_ptr<Count> count, size_t bytes)
    : count_(std::move(count)), bytes_(bytes) {}

Budget::Hold::~Hold() {
  if (count_ == nullptr) return;
  absl::MutexLock lock(&count_->mu);
  count_->bytes -= bytes_;
}

Budget::Hold::Hold(Hold&& other) noexcept
    : count_(std::move(other.count_)), bytes_(other.bytes_) {
  other.bytes_ = 0;
}

Budget::Hold& Budget::Hold::operator=(Hold&& other) noexcept {
  std::swap(count_, other.count_);
  std::swap(bytes_, other.bytes_);
  const Hold gone(std::move(other));  // freed now, not together with `other`
  return *this;
}

Budget::Hold Budget::Hold::Split(size_t bytes) {
  bytes_ -= bytes;
  return Hold(count_, bytes);
}

Budget::Budget(size_t limit)
    : limit_(limit), count_(std::make_shared<Count>()) {}

absl::StatusOr<Budget::Hold> Budget::Take(size_t bytes, size_t freed) {
  absl::MutexLock lock(&count_->mu);
  const size_t others = count_->bytes - freed;
  if (others > limit_ || bytes > limit_ - others) {
    return absl::ResourceExhaustedError(
        absl::StrCat(bytes, " bytes and the ", others,
                     " that are held exceed the budget of ", limit_));
  }
  count_->bytes += bytes;
  return Hold(count_, bytes);
}

size_t Budget::held() const {
  absl::MutexLock lock(&count_->mu);
  return count_->bytes;
}

}  // namespace penstock::tensor
