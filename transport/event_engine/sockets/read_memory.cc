#include "transport/event_engine/sockets/read_memory.h"

#include <algorithm>

#include "grpc/slice.h"

namespace penstock {
namespace event_engine {
namespace {

using grpc_event_engine::experimental::Slice;

// The size up to which a copy costs less than sharing the block, in bytes.
constexpr size_t kCopiedBytes = 1024;
// Limits a block. Larger ones gained nothing for messages of 1 MiB.
constexpr size_t kMostBlock = 256 * 1024;

}  // namespace

constexpr size_t ReadMemory::kLeastBlock;

absl::Span<uint8_t> ReadMemory::Next() {
  if (block_.size() - used_ < wanted_ / 4 || block_.empty()) {
    block_ = Slice(grpc_slice_malloc(wanted_));
    used_ = 0;
  }
  // Returns the part of the block from used_ on, which nobody else uses.
  return {const_cast<uint8_t*>(block_.data()) + used_, block_.size() - used_};
}

void ReadMemory::Take(size_t size, SliceBuffer* to) {
  const bool is_full = used_ + size == block_.size();
  if (size <= kCopiedBytes) {
    to->Append(Slice::FromCopiedBuffer(block_.data() + used_, size));
  } else {
    to->Append(Slice(grpc_slice_sub(block_.c_slice(), used_, used_ + size)));
    used_ += size;
  }
  if (is_full) {
    wanted_ = std::min(2 * wanted_, kMostBlock);
  } else if (size < wanted_ / 8) {
    wanted_ = std::max(wanted_ / 2, kLeastBlock);
  }
}

}  // namespace event_engine
}  // namespace penstock
