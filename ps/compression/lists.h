// The lists of tensors that encode a gradient on the wire.

#ifndef PENSTOCK_PS_COMPRESSION_LISTS_H_
#define PENSTOCK_PS_COMPRESSION_LISTS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tensor_service/tensor.h"

namespace penstock::ps::compression {

// A gradient of shape S with n elements, in row-major order, has one of these
// forms:
//
// clang-format off
//   Form       Tensors                                     Bytes
//   kFloating  f32, f64, f16 or bf16 of shape S            2n to 8n
//   kKOfN      int32 [k], then f32, f16 or bf16 [k]        6k or 8k
//   kInt8      int8 of shape S, then f32 [ceil(n / 256)]   n + n / 64
// clang-format on
//
// The types distinguish the forms, so no header is needed.
//
// kKOfN: ascending distinct indices from 0 to n - 1, and the elements there.
// All other elements are 0. k may be 0.
// kInt8: element i is its int8 times scale i / 256. Scales are from 0 to
// optim::kMostInF32.
enum class Form { kFloating, kKOfN, kInt8 };

// The number of elements that share a scale. Small, because the error of a
// block is proportional to its largest element. With 256, scales add only a
// 64th to the bytes. A block of int8 is four cache lines, which any vector size
// divides.
inline constexpr size_t kBlock = 256;

inline size_t BlocksOf(size_t count) { return (count + kBlock - 1) / kBlock; }

// Returns the form of an untrusted list. Returns INVALID_ARGUMENT, with the
// flaw and its place, unless the list has one of the three forms for `shape`.
// Reads all indices and scales, and allocates nothing. Ignores the elements:
// optim::CheckGradient() checks them in the decompressed gradient.
absl::StatusOr<Form> CheckList(absl::Span<const int64_t> shape,
                               absl::Span<const tensor::Tensor> list);

}  // namespace penstock::ps::compression

#endif  // PENSTOCK_PS_COMPRESSION_LISTS_H_
