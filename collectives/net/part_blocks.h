// The memory of parts that are being sent.

#ifndef PENSTOCK_COLLECTIVES_NET_PART_BLOCKS_H_
#define PENSTOCK_COLLECTIVES_NET_PART_BLOCKS_H_

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "collectives/net/message.h"
#include "transport/base/mutex.h"
#include "transport/memory/bytes.h"

namespace penstock::collectives {

// Copies parts into blocks, and reuses each block, because new pages would cost
// nearly as much as the copy. Thread-safe.
class PartBlocks : public std::enable_shared_from_this<PartBlocks> {
 public:
  // Returns a copy. Returns RESOURCE_EXHAUSTED if there is no memory.
  absl::StatusOr<memory::Bytes> Copy(const void* data, size_t bytes);

 private:
  // Blocks of one size, in bytes. Keeps up to `max_unused` blocks: 8 MiB.
  struct Kind {
    size_t bytes;
    size_t max_unused;
    std::vector<memory::Block> unused;
  };

  // Returns the smallest kind for `bytes` bytes, or null.
  Kind* KindFor(size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<memory::Block> Take(size_t bytes);
  void Return(memory::Block block);

  base::Mutex mu_;
  std::array<Kind, 2> kinds_ ABSL_GUARDED_BY(mu_) = {
      {{256 * 1024, 32, {}}, {kMaxPartBytes, 8, {}}}};
};

}  // namespace penstock::collectives

#endif  // PENSTOCK_COLLECTIVES_NET_PART_BLOCKS_H_
