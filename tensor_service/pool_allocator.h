// Tensors in a transport's pool, from which it sends without a copy.
//
// A template, because tensor_service knows no transport: the program that has
// one names its pool.

#ifndef PENSTOCK_TENSOR_SERVICE_POOL_ALLOCATOR_H_
#define PENSTOCK_TENSOR_SERVICE_POOL_ALLOCATOR_H_

#include <cstddef>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "tensor_service/allocator.h"
#include "tensor_service/buffer.h"

namespace penstock::tensor {

// Smaller tensors are not worth a place in the pool: Penstock copies what is
// shorter into the part that has the headers. In bytes.
inline constexpr size_t kMinPooledBytes = 4 * 1024;

// Allocates from `Pool`, and tensors below kMinPooledBytes from the heap. See
// PoolAllocator().
template <typename Pool>
class PoolAllocatorOf final : public Allocator {
 public:
  absl::StatusOr<std::shared_ptr<Buffer>> Allocate(size_t bytes) override {
    if (bytes < kMinPooledBytes) return HeapAllocator()->Allocate(bytes);
    auto memory = Pool::Allocate(bytes);
    if (!memory) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "allocate tensor of ", bytes, " bytes in the pool: out of memory"));
    }
    char* const data = reinterpret_cast<char*>(memory.data());
    // The only share: who sends the tensor shares the Buffer, see SliceOf(). So
    // the memory is written to only when nobody, here or at the peer, uses it.
    return Buffer::Wrap(data, bytes, /*writable=*/true,
                        [held = std::move(memory)] {});
  }
};

// Returns the allocator of memory of `Pool`, which lives as long as the
// process:
//
//   #include "penstock/allocator.h"
//   tensor::SetDefaultAllocator(tensor::PoolAllocator<penstock::Allocator>());
//
// Over shm the peer then uses the tensors where they lie. Until it has let go
// of one, and the connection has had traffic since, a Tensor copies the memory
// before writing, as for any call that still sends it. A pool that is full
// gives ordinary memory, so a slow or greedy peer costs copies, not failures.
// Memory that is kept for long is better on the heap: pass HeapAllocator().
//
// `Pool` has a static, thread-safe Allocate(size_t), as penstock::Allocator
// has. It returns a copyable share in memory aligned to Buffer::kAlignment,
// with a data(), which converts to false if there is none.
template <typename Pool>
Allocator* PoolAllocator() {
  static auto* const allocator = new PoolAllocatorOf<Pool>;
  return allocator;
}

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_POOL_ALLOCATOR_H_
