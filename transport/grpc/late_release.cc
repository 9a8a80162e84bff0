#include "transport/grpc/late_release.h"

#include <utility>

namespace penstock {
namespace core {

thread_local LateRelease* LateRelease::current_ = nullptr;

void LateRelease::Drop(grpc_core::Slice slice) {
  // A slice without a reference count has no destructor to call.
  if (current_ == nullptr || slice.c_slice().refcount == nullptr) return;
  current_->slices_.push_back(std::move(slice));
}

void LateRelease::DropAll(grpc_core::SliceBuffer* buffer) {
  while (buffer->Count() > 0) Drop(buffer->TakeFirst());
}

}  // namespace core
}  // namespace penstock
