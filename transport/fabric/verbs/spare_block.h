// Reusable memory for large messages that a device reads.

#ifndef PENSTOCK_TRANSPORT_FABRIC_VERBS_SPARE_BLOCK_H_
#define PENSTOCK_TRANSPORT_FABRIC_VERBS_SPARE_BLOCK_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "transport/base/mutex.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace fabric {
namespace verbs {

// Allocates on the heap, and keeps the largest released block for the next
// message. New pages must be cleared and registered, which may take longer than
// reading into them. Keeps at most one block, for at most `idle`. Blocks are
// declared stable (memory/stable_memory.h), so that a kept block stays
// registered. Thread-safe.
class SpareBlock : public std::enable_shared_from_this<SpareBlock> {
 public:
  // Creates an object that keeps no block of more than `limit` bytes.
  static std::shared_ptr<SpareBlock> Create(uint64_t limit,
                                            absl::Duration idle);
  SpareBlock(const SpareBlock&) = delete;
  SpareBlock& operator=(const SpareBlock&) = delete;

  // Returns `size` bytes: the start of the kept block, if it has at least
  // `size` and at most twice `size` bytes, otherwise new memory. The result may
  // outlive this object. Returns RESOURCE_EXHAUSTED if memory runs out.
  absl::StatusOr<memory::Block> Allocate(size_t size);

  // Frees the block if it has been kept for `idle`. Call it periodically, from
  // any thread.
  void OnTick(absl::Time now);

 private:
  struct Stable;

  SpareBlock(uint64_t limit, absl::Duration idle)
      : limit_(limit), idle_(idle) {}
  std::shared_ptr<Stable> Take(size_t size);
  void GiveBack(std::shared_ptr<Stable> block);

  const uint64_t limit_;
  const absl::Duration idle_;
  base::Mutex mu_;
  // The kept block. Null if there is none.
  std::shared_ptr<Stable> kept_ ABSL_GUARDED_BY(mu_);
  absl::Time kept_since_ ABSL_GUARDED_BY(mu_);
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_SPARE_BLOCK_H_
