// Allocates tensors in a transport's pool, for sending without a copy.
//
// This is a template, because tensor_service knows no transport: a program with
// a transport provides the pool.

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

// The smallest tensor that is allocated in the pool, in bytes. Penstock copies
// shorter tensors into the part that has the headers.
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
    // Gives the Buffer the only reference to the memory. A call that sends the
    // tensor shares the Buffer; see SliceOf(). A Tensor therefore writes to the
    // memory only if no other holder in this process, and not the peer, uses
    // it.
    return Buffer::Wrap(data, bytes, /*writable=*/true,
                        [held = std::move(memory)] {});
  }
};

// Returns the allocator of memory of `Pool`. The allocator lives as long as the
// process:
//
//   #include "penstock/allocator.h"
//   tensor::SetDefaultAllocator(tensor::PoolAllocator<penstock::Allocator>());
//
// Over shm, the peer uses the tensors without a copy. Until the peer has
// released such memory, a Tensor copies the memory before writing. This process
// notices the release with the connection's next traffic. A full pool falls
// back to ordinary memory, so a slow or greedy peer causes copies, not
// failures. For tensors that a program keeps for long, pass HeapAllocator()
// instead.
//
// `Pool` has a static, thread-safe Allocate(size_t), like penstock::Allocator.
// The function returns a copyable reference to memory that is aligned to
// Buffer::kAlignment. The reference has data(), and converts to false if there
// is no memory.
template <typename Pool>
Allocator* PoolAllocator() {
  static auto* const allocator = new PoolAllocatorOf<Pool>;
  return allocator;
}

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_POOL_ALLOCATOR_H_
