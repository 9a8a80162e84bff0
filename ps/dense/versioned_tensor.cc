#include "ps/dense/versioned_tensor.h"

#include <algorithm>
#include <utility>

namespace penstock::ps {

using tensor::Tensor;

VersionedTensor::VersionedTensor(Tensor first, tensor::Allocator* allocator)
    : allocator_(allocator),
      current_{0, std::move(first)},
      held_bytes_(current_.value.byte_size()) {}

VersionedTensor::Version VersionedTensor::Current() const {
  absl::MutexLock lock(&mu_);
  return current_;
}

absl::StatusOr<Tensor> VersionedTensor::Next() {
  tensor::DType dtype;
  tensor::Shape shape;
  {
    absl::MutexLock lock(&mu_);
    const auto free = std::find_if(
        earlier_.begin(), earlier_.end(),
        [](const Tensor& earlier) { return earlier.IsExclusive(); });
    if (free != earlier_.end()) {
      Tensor next = std::move(*free);
      earlier_.erase(free);
      return next;
    }
    dtype = current_.value.dtype();
    shape = current_.value.shape();
  }
  return Tensor::Allocate(dtype, std::move(shape), allocator_);
}

void VersionedTensor::Publish(Tensor next) {
  absl::MutexLock lock(&mu_);
  Tensor before = std::exchange(current_.value, std::move(next));
  if (current_.number == 0) {
    first_ = std::move(before);
  } else {
    earlier_.push_back(std::move(before));
  }
  ++current_.number;
  TrimLocked();
}

void VersionedTensor::Trim() {
  absl::MutexLock lock(&mu_);
  TrimLocked();
}

void VersionedTensor::TrimLocked() {
  if (first_.buffer().use_count() == 1) first_ = Tensor();
  bool has_spare = false;
  const auto is_too_many = [&has_spare](const Tensor& earlier) {
    return earlier.IsExclusive() && std::exchange(has_spare, true);
  };
  earlier_.erase(std::remove_if(earlier_.begin(), earlier_.end(), is_too_many),
                 earlier_.end());
  size_t bytes = current_.value.byte_size() + first_.byte_size();
  for (const Tensor& earlier : earlier_) bytes += earlier.byte_size();
  held_bytes_ = bytes;
}

}  // namespace penstock::ps
