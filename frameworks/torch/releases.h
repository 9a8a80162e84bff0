// Replacements for parts of 2.15 that PyTorch 2.6 lacks.

#ifndef PENSTOCK_FRAMEWORKS_TORCH_RELEASES_H_
#define PENSTOCK_FRAMEWORKS_TORCH_RELEASES_H_

#include "frameworks/torch/torch_headers.h"

namespace penstock {
namespace pytorch {

// Returns true if the caller does not wait for the operation immediately, or if
// this release of PyTorch has no such option.
template <typename Options>
bool IsAsync(const Options& options) {
  if constexpr (requires { options.asyncOp; }) {
    return options.asyncOp;
  } else {
    return true;
  }
}

// The kinds of operations, for profiles.
#ifdef C10D_BACKEND_HAS_RECONFIGURE
constexpr c10d::OpType kAllGatherTensors =
    c10d::OpType::ALLGATHER_INTO_TENSOR_COALESCED;
constexpr c10d::OpType kReduceScatterTensors =
    c10d::OpType::REDUCE_SCATTER_TENSOR_COALESCED;
#else
constexpr c10d::OpType kAllGatherTensors = c10d::OpType::ALLGATHER_COALESCED;
constexpr c10d::OpType kReduceScatterTensors = c10d::OpType::REDUCE_SCATTER;
#endif

}  // namespace pytorch
}  // namespace penstock

#endif  // PENSTOCK_FRAMEWORKS_TORCH_RELEASES_H_
