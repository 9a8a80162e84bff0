// An exchange of blocks that have different sizes.

#ifndef PENSTOCK_FRAMEWORKS_TORCH_BLOCKS_H_
#define PENSTOCK_FRAMEWORKS_TORCH_BLOCKS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "collectives/group.h"

namespace penstock {
namespace pytorch {

// Bytes for one rank, and bytes from one rank.
struct ConstBlock {
  const void* data;
  int64_t bytes;
};
struct Block {
  void* data;
  int64_t bytes;
};

// Copies block p of rank r's `in` to block r of rank p's `out`. Both lists have
// a block for each rank. Blocks of `in` and `out` must not overlap. All ranks
// call this. Returns INVALID_ARGUMENT, on all ranks, if a sender's size differs
// from the receiver's. The group then remains usable.
absl::Status ExchangeBlocks(collectives::Group* group,
                            absl::Span<const ConstBlock> in,
                            absl::Span<const Block> out);

}  // namespace pytorch
}  // namespace penstock

#endif  // PENSTOCK_FRAMEWORKS_TORCH_BLOCKS_H_
