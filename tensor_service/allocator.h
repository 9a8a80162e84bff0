// The source of memory for new tensors.

#ifndef PENSTOCK_TENSOR_SERVICE_ALLOCATOR_H_
#define PENSTOCK_TENSOR_SERVICE_ALLOCATOR_H_

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "tensor_service/buffer.h"

namespace penstock::tensor {

// A source of memory for tensors. Implement this interface to place tensors in
// your own memory. pool_allocator.h has an allocator of memory that a transport
// sends without a copy.
//
// Thread-safe: any thread may allocate. The last holder of a buffer frees the
// buffer on its own thread, which may be one of gRPC's.
class Allocator {
 public:
  virtual ~Allocator() = default;

  // Allocates a writable, uninitialised buffer of `bytes` bytes. data() is
  // aligned to Buffer::kAlignment and is never null, even for 0 bytes. The
  // memory must belong to this buffer alone, because Tensor writes to a buffer
  // that has one holder. The allocator must outlive the buffer. Returns
  // RESOURCE_EXHAUSTED if there is no memory.
  virtual absl::StatusOr<std::shared_ptr<Buffer>> Allocate(size_t bytes) = 0;
};

// Returns the allocator of ordinary memory, Buffer::Allocate(). The allocator
// lives as long as the process.
Allocator* HeapAllocator();

// Returns the allocator that Tensor::Allocate(), Of(), Copy() and
// mutable_flat() use by default. Initially HeapAllocator().
Allocator* DefaultAllocator();

// Sets the default allocator, which must outlive all buffers that it makes.
// Null selects HeapAllocator(). Thread-safe, but call it once, from main():
// libraries should leave the choice to the program.
void SetDefaultAllocator(Allocator* allocator);

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_ALLOCATOR_H_
