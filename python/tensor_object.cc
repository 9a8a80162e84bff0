#include "python/tensor_object.h"

#include <atomic>
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

bool TensorObject::IsWritable() const {
  const std::shared_ptr<tensor::Buffer>& buffer = shared_->buffer();
  if (shared_->byte_size() == 0) return true;
  if (!buffer->writable() || buffer.use_count() != 1 || !shared_->IsAligned()) {
    return false;
  }
  // As in Tensor::MakeWritable(): after the last reads of who has let go.
  std::atomic_thread_fence(std::memory_order_acquire);
  return true;
}

absl::Status TensorObject::MakeWritable() {
  if (IsWritable()) return absl::OkStatus();
  const Tensor before = *shared_;
  absl::StatusOr<Tensor> copy = [&before] {
    Unlocked unlocked;
    return before.Copy(Pool());
  }();
  if (!copy.ok()) return copy.status();
  Replace(*std::move(copy));
  return absl::OkStatus();
}

void TensorObject::Replace(Tensor tensor) {
  shared_ = std::make_shared<const Tensor>(std::move(tensor));
}

}  // namespace penstock::python
