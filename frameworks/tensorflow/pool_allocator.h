// Allocates TensorFlow's CPU memory in the pool, where peers on this host read
// without a copy.

#ifndef PENSTOCK_FRAMEWORKS_TENSORFLOW_POOL_ALLOCATOR_H_
#define PENSTOCK_FRAMEWORKS_TENSORFLOW_POOL_ALLOCATOR_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "tensorflow/core/framework/allocator.h"
#include "transport/base/mutex.h"

namespace penstock {
namespace tensorflow {

// Allocates large memory in the pool while the pool has room, and all other
// memory on the heap. Thread-safe.
class PoolAllocator final : public ::tensorflow::Allocator {
 public:
  // The size, in bytes, below which a copy costs less than a lease.
  static constexpr size_t kLeastBytes = 64 * 1024;

  std::string Name() override { return "penstock_pool"; }
  void* AllocateRaw(size_t alignment, size_t bytes) override;
  void DeallocateRaw(void* data) override;

 private:
  // The number of parts into which the leases are divided. Each part has a
  // lock, because any thread may deallocate.
  static constexpr size_t kParts = 16;
  struct Part {
    base::Mutex mu;
    absl::flat_hash_map<const void*, std::shared_ptr<uint8_t>> leases
        ABSL_GUARDED_BY(mu);
  };

  Part* PartOf(const void* data);

  Part parts_[kParts];
};

// Makes TensorFlow allocate its CPU memory by a PoolAllocator, permanently and
// for the whole process. TensorFlow aborts if it has already allocated memory.
void UsePoolForTensors();
// Returns true if UsePoolForTensors() was called.
bool TensorsLieInPool();

}  // namespace tensorflow
}  // namespace penstock

#endif  // PENSTOCK_FRAMEWORKS_TENSORFLOW_POOL_ALLOCATOR_H_
