// One call of an operation, in the form in which the ranks of a group compare
// their calls.

#ifndef PENSTOCK_COLLECTIVES_CALL_H_
#define PENSTOCK_COLLECTIVES_CALL_H_

#include <array>
#include <cstdint>
#include <string>

#include "collectives/reduction/reduction.h"
#include "collectives/schedule/plan.h"
#include "tensor_service/dtype.h"

namespace penstock::collectives {

struct Call {
  Operation operation = Operation::kBarrier;
  // The operator of operations that reduce.
  ReduceOp op = ReduceOp::kSum;
  tensor::DType dtype = tensor::DType::kUint8;
  // The root of the operation, if the operation has a root.
  int root = 0;
  // The number of elements: of the caller's larger buffer, or of one of its
  // blocks if the operation divides the buffer into blocks.
  int64_t count = 0;
};

// The number of words of an encoded call, which other processes read. Equal
// calls have equal words.
inline constexpr int kCallWords = 2;
using CallWords = std::array<uint64_t, kCallWords>;
CallWords Encode(const Call& call);

// Returns for example "broadcast of 8 f32 from rank 1". Accepts any words,
// because a peer wrote them.
std::string Describe(const CallWords& words);

}  // namespace penstock::collectives

#endif  // PENSTOCK_COLLECTIVES_CALL_H_
