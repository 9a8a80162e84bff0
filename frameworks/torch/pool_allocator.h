// Allocates tensors in memory that other ranks read in place.

#ifndef PENSTOCK_FRAMEWORKS_TORCH_POOL_ALLOCATOR_H_
#define PENSTOCK_FRAMEWORKS_TORCH_POOL_ALLOCATOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "collectives/host/pool.h"
#include "frameworks/torch/torch_headers.h"
#include "transport/base/mutex.h"

namespace penstock {
namespace pytorch {

// PyTorch's allocator of CPU memory, for the rest of the process. Allocates
// large tensors from a pool once there is one, and all other tensors by the
// allocator that it replaces. In the child of a fork, the replaced allocator
// allocates all tensors. Thread-safe.
class PoolAllocator final : public c10::Allocator {
 public:
  // The minimum size of tensors in the pool, in bytes. Smaller tensors would
  // gain nothing, because operations copy them through slots anyway.
  static constexpr size_t kLeastBytes = 64 * 1024;

  // Makes PyTorch use this allocator. The next group that is formed on one host
  // gets a pool of `bytes`.
  static void Request(uint64_t bytes);
  // Returns the requested bytes once, and then 0.
  static uint64_t TakeRequest();
  // Allocates tensors from `pool` from now on. Tensors in earlier pools keep
  // their memory.
  static void Use(std::shared_ptr<collectives::Pool> pool);

  c10::DataPtr allocate(size_t bytes) override;
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

 private:
  // Memory of one tensor.
  struct Held;

  explicit PoolAllocator(c10::Allocator* others) : others_(others) {}
  static PoolAllocator* Get();
  static void Delete(void* held);
  std::shared_ptr<collectives::Pool> pool();

  c10::Allocator* const others_;
  base::Mutex mu_;
  uint64_t requested_ ABSL_GUARDED_BY(mu_) = 0;
  uint32_t fork_count_ ABSL_GUARDED_BY(mu_) = 0;
  std::shared_ptr<collectives::Pool> pool_ ABSL_GUARDED_BY(mu_);
};

}  // namespace pytorch
}  // namespace penstock

#endif  // PENSTOCK_FRAMEWORKS_TORCH_POOL_ALLOCATOR_H_
