// Where the memory of new tensors comes from.

#ifndef PENSTOCK_TENSOR_SERVICE_ALLOCATOR_H_
#define PENSTOCK_TENSOR_SERVICE_ALLOCATOR_H_

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "tensor_service/buffer.h"

namespace penstock::tensor {

// A source of memory for tensors. Implement it to have tensors in memory of
// your own. pool_allocator.h has one for memory that a transport sends without
// a copy.
//
// Thread-safe: any thread may allocate. The last holder of a buffer frees it,
// on its own thread, which may be one of gRPC's.
class Allocator {
 public:
  virtual ~Allocator() = default;

  // Allocates a writable buffer of `bytes` bytes, not initialised, whose data()
  // is aligned to Buffer::kAlignment and not null, for 0 bytes too. Nothing but
  // the buffer may share the memory: Tensor writes to it while the buffer has
  // one holder. The buffer may outlive everything but the allocator. Returns
  // RESOURCE_EXHAUSTED if there is no memory.
  virtual absl::StatusOr<std::shared_ptr<Buffer>> Allocate(size_t bytes) = 0;
};

// Returns the allocator of ordinary memory, Buffer::Allocate(). It lives as
// long as the process.
Allocator* HeapAllocator();

// Returns the allocator that Tensor::Allocate(), Of(), Copy() and
// mutable_flat() use where the caller names none. HeapAllocator() at first.
Allocator* DefaultAllocator();

// Chooses the default allocator from now on. It must outlive all buffers that
// it makes. Null chooses HeapAllocator(). Thread-safe, but call it once, from
// main(): libraries should leave the choice to the program.
void SetDefaultAllocator(Allocator* allocator);

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_ALLOCATOR_H_
