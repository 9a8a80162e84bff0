#include "transport/allocator.h"

#include <unistd.h>

#include <utility>

#include "absl/status/statusor.h"
#include "transport/fabric/shm/huge_pages.h"
#include "transport/fabric/shm/user_arenas.h"
#include "transport/memory/bytes.h"
#include "transport/settings/settings.h"

namespace penstock {
namespace {

// A bad value is logged when the first channel or server is made.
fabric::shm::HugePages PagesOfPool() {
  static const fabric::shm::HugePages pages =
      ResolveShmHugePages().value_or(fabric::shm::HugePages::kTransparent);
  return pages;
}

std::shared_ptr<uint8_t> FromPool(size_t bytes) {
  using fabric::shm::Arena;
  using fabric::shm::ArenaLease;
  absl::StatusOr<std::shared_ptr<Arena>> arena =
      fabric::shm::ArenaFor(geteuid(), PagesOfPool());
  if (!arena.ok()) return nullptr;
  absl::StatusOr<std::shared_ptr<ArenaLease>> lease = (*arena)->Allocate(bytes);
  if (!lease.ok()) return nullptr;
  uint8_t* const data = (*lease)->data();
  return std::shared_ptr<uint8_t>(*std::move(lease), data);
}

}  // namespace

Allocator::Buffer Allocator::Allocate(size_t bytes) {
  Buffer buffer;
  buffer.data_ = FromPool(bytes);
  buffer.is_pooled_ = buffer.data_ != nullptr;
  if (!buffer.is_pooled_) {
    absl::StatusOr<memory::Block> block = memory::AllocateBlock(bytes);
    if (!block.ok()) return Buffer();
    buffer.data_ = std::move(block->data);
  }
  buffer.size_ = bytes;
  return buffer;
}

grpc::Slice Allocator::Buffer::ToSlice() const {
  if (size_ == 0) return grpc::Slice();
  auto* share = new std::shared_ptr<uint8_t>(data_);
  return grpc::Slice(
      data_.get(), size_,
      [](void* arg) { delete static_cast<std::shared_ptr<uint8_t>*>(arg); },
      share);
}

}  // namespace penstock
