// Reduces buffers element by element, in a fixed order.

#ifndef PENSTOCK_COLLECTIVES_REDUCTION_REDUCTION_H_
#define PENSTOCK_COLLECTIVES_REDUCTION_REDUCTION_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tensor_service/dtype.h"

namespace penstock::collectives {

enum class ReduceOp {
  kSum,
  kProduct,
  kMin,
  kMax,
  kAverage,
  kAnd,
  kOr,
  kXor,
};

// Returns "sum", "product" and so on.
absl::string_view Name(ReduceOp op);

// Returns an error for a type that has no such operation:
// - Floating-point types have no bitwise operations.
// - Integers have no average.
// - Bool has only min, max and the bitwise operations, with results 0 and 1.
absl::Status CheckReduction(ReduceOp op, tensor::DType dtype);

// Writes ((from[0] op from[1]) op from[2]) and so on to `into`, for `count`
// elements. Call only if CheckReduction() accepts the arguments and `from` is
// not empty.
//
// All pointers may be unaligned. `into` may be equal to elements of `from`;
// otherwise it must not overlap any of them.
//
// - f16 and bf16 are reduced in f32 and rounded once, to nearest, ties to even.
//   f32 and f64 are rounded after each operation.
// - An average is the sum divided by the number of buffers. The sum of f16 may
//   exceed f16's range.
// - Sums and products of integers are modulo 2^bits.
// - Min and max are NaN if an operand is NaN.
//
// The result depends only on the operands and their order, not on alignment,
// count or place. All kinds of vectors of one processor family give the same
// result, except for the payload of NaN.
void Reduce(ReduceOp op, tensor::DType dtype,
            absl::Span<const void* const> from, void* into, size_t count);

// Divides floating-point elements in place: the last step of an average whose
// sum several calls of Reduce() have computed.
void Divide(tensor::DType dtype, void* data, int by, size_t count);

}  // namespace penstock::collectives

#endif  // PENSTOCK_COLLECTIVES_REDUCTION_REDUCTION_H_
