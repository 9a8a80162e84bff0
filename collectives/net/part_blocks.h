// The memory of parts that are being sent.

#ifndef PENSTOCK_COLLECTIVES_NET_PART_BLOCKS_H_
#define PENSTOCK_COLLECTIVES_NET_PART_BLOCKS_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "transport/base/mutex.h"
#include "transport/memory/bytes.h"

namespace penstock::collectives {

// Copies parts into blocks, and reuses each block, because new pages would cost
// nearly as much as the copy. Thread-safe.
class PartBlocks : public std::enable_shared_from_this<PartBlocks> {
 public:
  // Limits the bytes of a block. Larger parts are allocated separately.
  static constexpr size_t kBlockBytes = 1024 * 1024;
  // Limits the unused blocks: 8 MiB.
  static constexpr size_t kMaxUnused = 8;

  // Returns a copy. Returns RESOURCE_EXHAUSTED if there is no memory.
  absl::StatusOr<memory::Bytes> Copy(const void* data, size_t bytes);

 private:
  absl::StatusOr<memory::Block> Take();
  void Return(memory::Block block);

  base::Mutex mu_;
  std::vector<memory::Block> unused_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::collectives

#endif  // PENSTOCK_COLLECTIVES_NET_PART_BLOCKS_H_
