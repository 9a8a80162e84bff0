// What a server does with a compressed gradient.

#ifndef PENSTOCK_PS_COMPRESSION_DECOMPRESS_H_
#define PENSTOCK_PS_COMPRESSION_DECOMPRESS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ps/optim/workers.h"
#include "tensor_service/tensor.h"

namespace penstock::ps::compression {

// Returns the gradient of `shape` that a list of lists.h stands for: a single
// tensor as it is, without a copy, and what is compressed as f32 on the heap.
//
// The list may be anybody's. Returns INVALID_ARGUMENT, as CheckList() does,
// before it allocates anything; so a list costs no more memory than a gradient
// of `shape`, which is the server's own. Returns RESOURCE_EXHAUSTED if there is
// no memory.
//
// Elements may still be NaN or too large: the result is a gradient as any
// other, and goes through optim::CheckGradient().
absl::StatusOr<tensor::Tensor> Decompress(absl::Span<const int64_t> shape,
                                          absl::Span<const tensor::Tensor> list,
                                          const optim::Workers& workers);

}  // namespace penstock::ps::compression

#endif  // PENSTOCK_PS_COMPRESSION_DECOMPRESS_H_
