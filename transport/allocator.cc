#include "penstock/allocator.h"

#include <utility>

#include "absl/status/statusor.h"
#include "transport/memory/bytes.h"
#include "transport/pool.h"

namespace penstock {

Allocator::Buffer Allocator::Allocate(size_t bytes) {
  Buffer buffer;
  buffer.data_ = AllocateFromPool(bytes);
  buffer.is_pooled_ = buffer.data_ != nullptr;
  if (!buffer.is_pooled_) {
    absl::StatusOr<memory::Block> block = memory::AllocateBlock(bytes);
    if (!block.ok()) return Buffer();
    buffer.data_ = std::move(block->data);
  }
  buffer.size_ = bytes;
  return buffer;
}

uint64_t Allocator::RaiseLimit(uint64_t bytes) { return RaisePoolLimit(bytes); }

grpc::Slice Allocator::Buffer::ToSlice() const {
  if (size_ == 0) return grpc::Slice();
  auto* share = new std::shared_ptr<uint8_t>(data_);
  return grpc::Slice(
      data_.get(), size_,
      [](void* arg) { delete static_cast<std::shared_ptr<uint8_t>*>(arg); },
      share);
}

}  // namespace penstock
