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
  if (bytes <= kSmallBytes || bytes > static_cast<size_t>(kMaxPartBytes)) {
    return memory::CopyBytes({static_cast<const uint8_t*>(data), bytes});
  }
  absl::StatusOr<memory::Block> block = Take(bytes);
  if (!block.ok()) return block.status();
  uint8_t* const begin = block->data.get();
  std::memcpy(begin, data, bytes);
  std::shared_ptr<const void> owner(
      begin, [self = shared_from_this(),
              block = *std::move(block)](const void*) { self->Return(block); });
  return memory::Bytes{begin, bytes, std::move(owner)};
}

PartBlocks::Kind* PartBlocks::KindFor(size_t bytes) {
  for (Kind& kind : kinds_) {
    if (bytes <= kind.bytes) return &kind;
  }
  return nullptr;
}

absl::StatusOr<memory::Block> PartBlocks::Take(size_t bytes) {
  {
    base::MutexLock lock(&mu_);
    Kind* const kind = KindFor(bytes);
    if (!kind->unused.empty()) {
      memory::Block block = std::move(kind->unused.back());
      kind->unused.pop_back();
      return block;
    }
    bytes = kind->bytes;
  }
  return memory::AllocateBlock(bytes);
}

void PartBlocks::Return(memory::Block block) {
  base::MutexLock lock(&mu_);
  Kind* const kind = KindFor(block.size);
  if (kind->unused.size() < kind->max_unused) {
    kind->unused.push_back(std::move(block));
  }
}

}  // namespace penstock::collectives
