// The memory in which a program's operands lie.

#ifndef PENSTOCK_COLLECTIVES_OPERAND_MEMORY_H_
#define PENSTOCK_COLLECTIVES_OPERAND_MEMORY_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "collectives/reduction/reduction.h"
#include "tensor_service/dtype.h"

namespace penstock::collectives {

// Copies and reduces operands in one kind of memory, such as a GPU's. A
// NetGroup accesses operands only through this interface. Messages are always
// in the host's memory, where the CPU reads and writes them.
//
// All functions block until their work is done. Pointers may be unaligned. If a
// kind of memory cannot reduce unaligned elements, or lacks an operation or a
// type, its function returns INVALID_ARGUMENT or UNIMPLEMENTED. Thread-safe.
class OperandMemory {
 public:
  virtual ~OperandMemory() = default;

  // Returns true if the memory at `address` is of this kind, and false if it is
  // the host's memory. Returns an error for memory that the CPU may be unable
  // to access: memory of another kind, or of an unknown kind.
  virtual absl::StatusOr<bool> Has(const void* address) const = 0;

  // Copy between this memory and the host's. `bytes` is not 0.
  virtual absl::Status CopyToHost(const void* from, void* to, size_t bytes) = 0;
  virtual absl::Status CopyFromHost(const void* from, void* to,
                                    size_t bytes) = 0;
  // Copies within this memory. The ranges do not overlap.
  virtual absl::Status Copy(const void* from, void* to, size_t bytes) = 0;

  // Replaces `count` elements at `data` by op(received, data), or by op(data,
  // received) if `is_right`. `received` is in the host's memory. The result is
  // bit-equal to that of Reduce() in reduction.h. `count` is not 0.
  virtual absl::Status Reduce(ReduceOp op, tensor::DType dtype,
                              const void* received, bool is_right, void* data,
                              size_t count) = 0;
  // Divides floating-point elements in place, as Divide() in reduction.h.
  virtual absl::Status Divide(tensor::DType dtype, void* data, int by,
                              size_t count) = 0;
};

// Returns the host's memory, whose elements the CPU reduces. Has() returns true
// for all addresses.
OperandMemory* HostMemory();

// Returns the first of `memories` that has `address`. If none has it, returns
// the first error of a Has() call, or HostMemory() if no call failed.
absl::StatusOr<OperandMemory*> MemoryOf(
    absl::Span<OperandMemory* const> memories, const void* address);

}  // namespace penstock::collectives

#endif  // PENSTOCK_COLLECTIVES_OPERAND_MEMORY_H_
