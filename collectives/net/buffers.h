// The buffer of a schedule, and the caller's memory.

#ifndef PENSTOCK_COLLECTIVES_NET_BUFFERS_H_
#define PENSTOCK_COLLECTIVES_NET_BUFFERS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "collectives/call.h"
#include "collectives/operand_memory.h"
#include "collectives/schedule/blocks.h"
#include "transport/memory/bytes.h"

namespace penstock::collectives {

// Returns the number of elements in a schedule's buffer for `call`: ranks *
// call.count if the buffer has a block for each rank, and call.count otherwise.
int64_t BufferCount(const Call& call, int ranks);

// The memory on which the schedule of one rank works: the caller's memory if
// possible, and otherwise a separate block.
class Buffers {
 public:
  // Copies the rank's operand to its range of the buffer. `memory` has `in` and
  // `out`. `extent` is the number of elements, from the beginning of the
  // buffer, that the schedule uses. Returns RESOURCE_EXHAUSTED if there is no
  // memory, and errors of `memory`.
  static absl::StatusOr<Buffers> Fill(const Call& call, int rank, int ranks,
                                      int64_t extent, OperandMemory* memory,
                                      const void* in, void* out);

  void* data() const { return data_; }
  // Returns the memory of data().
  OperandMemory* memory() const {
    return block_.data == nullptr ? callers_ : HostMemory();
  }
  // Copies the rank's result to the caller's memory.
  absl::Status Deliver();

 private:
  explicit Buffers(OperandMemory* callers) : callers_(callers) {}
  // Copies from the caller's memory to data().
  absl::Status CopyIn(const void* from, void* to, size_t bytes);
  absl::Status Own(const Call& call, int64_t elements);

  OperandMemory* callers_;
  memory::Block block_;  // on the host, unless the caller's memory is used
  void* data_ = nullptr;
  // The result that Deliver() copies to the caller, or null.
  const void* result_ = nullptr;
  void* out_ = nullptr;
  size_t result_bytes_ = 0;
};

}  // namespace penstock::collectives

#endif  // PENSTOCK_COLLECTIVES_NET_BUFFERS_H_
