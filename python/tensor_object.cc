#include "python/tensor_object.h"

#include <utility>

#include "absl/status/statusor.h"
#include "penstock/allocator.h"
#include "python/gil.h"
#include "tensor_service/pool_allocator.h"

namespace penstock::python {

using tensor::Tensor;

tensor::Allocator* Pool() {
  return tensor::PoolAllocator<penstock::Allocator>();
}

TensorObject::TensorObject(Tensor tensor)
    : shared_(std::make_shared<const Tensor>(std::move(tensor))) {}

TensorObject::~TensorObject() {
  shared_.reset();
  RunPending();
}

bool TensorObject::IsWritable() const { return shared_->IsExclusive(); }

absl::Status TensorObject::MakeWritable() {
  while (!IsWritable()) {
    const std::shared_ptr<const Tensor> before = shared_;
    absl::StatusOr<Tensor> copy = [&before] {
      Unlocked unlocked;
      return before->Copy(Pool());
    }();
    if (!copy.ok()) return copy.status();
    // Replaces the memory unless another thread has done so in the meantime.
    if (shared_ == before) Replace(*std::move(copy));
  }
  return absl::OkStatus();
}

void TensorObject::Replace(Tensor tensor) {
  shared_ = std::make_shared<const Tensor>(std::move(tensor));
}

}  // namespace penstock::python
