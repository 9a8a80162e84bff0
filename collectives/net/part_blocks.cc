#include "collectives/net/part_blocks.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "transport/base/mutex.h"
#include "transport/memory/bytes.h"

namespace penstock::collectives {
namespace {

// The size, in bytes, below which copies use the heap, because its caches are
// fast for small sizes.
constexpr size_t kSmallBytes = 32 * 1024;

}  // namespace

absl::StatusOr<memory::Bytes> PartBlocks::Copy(const void* data, size_t bytes) {
  if (bytes <= kSmallBytes || bytes > kBlockBytes) {
    return memory::CopyBytes({static_cast<const uint8_t*>(data), bytes});
  }
  absl::StatusOr<memory::Block> block = Take();
  if (!block.ok()) return block.status();
  uint8_t* const begin = block->data.get();
  std::memcpy(begin, data, bytes);
  std::shared_ptr<const void> owner(
      begin, [self = shared_from_this(),
              block = *std::move(block)](const void*) { self->Return(block); });
  return memory::Bytes{begin, bytes, std::move(owner)};
}

absl::StatusOr<memory::Block> PartBlocks::Take() {
  {
    base::MutexLock lock(&mu_);
    if (!unused_.empty()) {
      memory::Block block = std::move(unused_.back());
      unused_.pop_back();
      return block;
    }
  }
  return memory::AllocateBlock(kBlockBytes);
}

void PartBlocks::Return(memory::Block block) {
  base::MutexLock lock(&mu_);
  if (unused_.size() < kMaxUnused) unused_.push_back(std::move(block));
}

}  // namespace penstock::collectives
