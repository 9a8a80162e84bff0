// Vectorised passes over floating-point elements, which convert between the
// types of the wire and of the kernels.

#ifndef PENSTOCK_PS_OPTIM_ELEMENTS_H_
#define PENSTOCK_PS_OPTIM_ELEMENTS_H_

#include <cstddef>

#include "tensor_service/dtype.h"

namespace penstock::ps::optim {

// The number of elements in a piece, which fits into the L1 cache. A Scratch
// holds a piece.
inline constexpr size_t kPiece = 2048;

template <typename T>
struct alignas(64) Scratch {
  T data[kPiece];
};

// Returns true for f32, f64, f16 and bf16. All functions below accept only
// these.
bool IsFloating(tensor::DType dtype);

// The mode of a gather: kSet overwrites `sum`, kAdd adds to it. A gather reads
// `count` elements at `from`, which may be unaligned. `sum` is a Scratch's
// memory. Conversions round to nearest.
enum class Gather { kSet, kAdd };
void GatherInto(float* sum, Gather how, tensor::DType dtype, const void* from,
                size_t count);
void GatherInto(double* sum, Gather how, tensor::DType dtype, const void* from,
                size_t count);

// Divides each of the `count` elements of a Scratch by `by`.
void Divide(float* data, float by, size_t count);
void Divide(double* data, double by, size_t count);

// Writes f32 elements as f16 or bf16, rounded to nearest, ties to even. Values
// too large for f16 become infinite.
void Narrow(const float* from, tensor::DType dtype, void* to, size_t count);

// Copies without filling the caches. Includes a store barrier for this thread.
void CopyPastCaches(const void* from, void* to, size_t bytes);

// Returns the index of the first element that is NaN or whose magnitude exceeds
// `limit`, or `count`. Accepts unaligned data.
size_t FindBeyond(tensor::DType dtype, const void* data, double limit,
                  size_t count);

// Returns the sum of the elements' squares in f64. The sum is the same on each
// processor. Accepts unaligned data.
double SumOfSquares(tensor::DType dtype, const void* data, size_t count);

// Multiplies each element by `by` in place; f16 and bf16 are multiplied in f32.
// Accepts unaligned data.
void Multiply(tensor::DType dtype, void* data, double by, size_t count);

// Returns one element as a double, for messages.
double ElementAt(tensor::DType dtype, const void* data, size_t index);

}  // namespace penstock::ps::optim

#endif  // PENSTOCK_PS_OPTIM_ELEMENTS_H_
