// Vectorised passes over floating-point elements: what lies between the wire's
// types and the kernels'.

#ifndef PENSTOCK_PS_OPTIM_ELEMENTS_H_
#define PENSTOCK_PS_OPTIM_ELEMENTS_H_

#include <cstddef>

#include "tensor_service/dtype.h"

namespace penstock::ps::optim {

// Elements are passed in pieces of at most so many, which lie in the
// first-level cache. A Scratch holds a piece.
inline constexpr size_t kPiece = 2048;

template <typename T>
struct alignas(64) Scratch {
  T data[kPiece];
};

// Returns whether the type is f32, f64, f16 or bf16. All below are for these.
bool IsFloating(tensor::DType dtype);

// Writes `count` elements at `from`, which need not be aligned, to `sum`, which
// is a Scratch's: as they are, rounded to nearest, or added to what is there.
enum class Gather { kSet, kAdd };
void GatherInto(float* sum, Gather how, tensor::DType dtype, const void* from,
                size_t count);
void GatherInto(double* sum, Gather how, tensor::DType dtype, const void* from,
                size_t count);

// Divides each element of a Scratch.
void Divide(float* data, float by, size_t count);
void Divide(double* data, double by, size_t count);

// Writes f32 elements as f16 or bf16, rounded to nearest, ties to even; what is
// too large for f16 becomes infinite.
void Narrow(const float* from, tensor::DType dtype, void* to, size_t count);

// Copies past the caches. A barrier for the stores of this thread is part of
// it.
void CopyPastCaches(const void* from, void* to, size_t bytes);

// Returns the index of the first element whose magnitude is above `limit`, or
// that is NaN; `count`: there is none. Needs no alignment.
size_t FindBeyond(tensor::DType dtype, const void* data, double limit,
                  size_t count);

// Returns the sum of the squares, in f64, the same on each processor. Needs no
// alignment.
double SumOfSquares(tensor::DType dtype, const void* data, size_t count);

// Multiplies in place, f16 and bf16 in f32. Needs no alignment.
void Multiply(tensor::DType dtype, void* data, double by, size_t count);

// Returns an element, for messages.
double ElementAt(tensor::DType dtype, const void* data, size_t index);

}  // namespace penstock::ps::optim

#endif  // PENSTOCK_PS_OPTIM_ELEMENTS_H_
