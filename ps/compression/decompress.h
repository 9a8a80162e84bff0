// Decompresses gradients at a server.

#ifndef PENSTOCK_PS_COMPRESSION_DECOMPRESS_H_
#define PENSTOCK_PS_COMPRESSION_DECOMPRESS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ps/optim/workers.h"
#include "tensor_service/tensor.h"

namespace penstock::ps::compression {

// Returns the gradient of `shape` that a list of lists.h encodes. A single
// tensor is returned without a copy. A compressed list is expanded to f32 on
// the heap.
//
// The list may be untrusted. Returns INVALID_ARGUMENT, as CheckList() does,
// before any allocation. A list thus costs at most the memory of a gradient of
// `shape`, which the server chose. Returns RESOURCE_EXHAUSTED if memory cannot
// be allocated.
//
// Elements may still be NaN or too large. Check the result with
// optim::CheckGradient(), like any gradient.
absl::StatusOr<tensor::Tensor> Decompress(absl::Span<const int64_t> shape,
                                          absl::Span<const tensor::Tensor> list,
                                          const optim::Workers& workers);

}  // namespace penstock::ps::compression

#endif  // PENSTOCK_PS_COMPRESSION_DECOMPRESS_H_
