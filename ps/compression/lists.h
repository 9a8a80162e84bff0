// The lists of tensors that stand for a gradient on the wire.

#ifndef PENSTOCK_PS_COMPRESSION_LISTS_H_
#define PENSTOCK_PS_COMPRESSION_LISTS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tensor_service/tensor.h"

namespace penstock::ps::compression {

// A gradient of shape S with n elements, in row-major order, is one of
//
// clang-format off
//   Form       Tensors                                     Bytes
//   kFloating  f32, f64, f16 or bf16 of shape S            2n to 8n
//   kKOfN      int32 [k], then f32, f16 or bf16 [k]        6k or 8k
//   kInt8      int8 of shape S, then f32 [ceil(n / 256)]   n + n / 64
// clang-format on
//
// The types tell them apart, so there is no header.
//
// kKOfN: indices that ascend without repeats, from 0 to n - 1, and the elements
// there. All others are 0. k may be 0.
// kInt8: element i is its int8 times scale i / 256. Scales are from 0 to
// optim::kMostInF32.
enum class Form { kFloating, kKOfN, kInt8 };

// Elements that share a scale. A block's error is in proportion to its largest
// element, so blocks are small; with 256, scales add only a 64th to the bytes,
// and a block is four cache lines of int8, which is enough for any vectors.
inline constexpr size_t kBlock = 256;

inline size_t BlocksOf(size_t count) { return (count + kBlock - 1) / kBlock; }

// Returns the form of a list that anybody may have sent. Returns
// INVALID_ARGUMENT, which says what is wrong and where, unless it is one of the
// three for `shape`. Reads all indices and scales, allocates nothing, and does
// not look at the elements: those of a gradient are checked when it is whole,
// by optim::CheckGradient().
absl::StatusOr<Form> CheckList(absl::Span<const int64_t> shape,
                               absl::Span<const tensor::Tensor> list);

}  // namespace penstock::ps::compression

#endif  // PENSTOCK_PS_COMPRESSION_LISTS_H_
