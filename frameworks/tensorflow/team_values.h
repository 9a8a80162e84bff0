// Converts TensorFlow's names of operations and types to those of Penstock's
// reductions.

#ifndef PENSTOCK_FRAMEWORKS_TENSORFLOW_TEAM_VALUES_H_
#define PENSTOCK_FRAMEWORKS_TENSORFLOW_TEAM_VALUES_H_

#include <string>

#include "absl/types/optional.h"
#include "collectives/reduction/reduction.h"
#include "tensor_service/dtype.h"
#include "tensorflow/core/framework/types.pb.h"

namespace penstock {
namespace tensorflow {

// Return nothing for an operation, or a type, that no reduction has. `kernel`
// is the type of the kernel that merges two tensors.
inline absl::optional<collectives::ReduceOp> ReduceOpOf(
    const std::string& kernel) {
  if (kernel == "Add") return collectives::ReduceOp::kSum;
  if (kernel == "Mul") return collectives::ReduceOp::kProduct;
  if (kernel == "Minimum") return collectives::ReduceOp::kMin;
  if (kernel == "Maximum") return collectives::ReduceOp::kMax;
  return absl::nullopt;
}

inline absl::optional<tensor::DType> TypeOf(::tensorflow::DataType type) {
  switch (type) {
    case ::tensorflow::DT_FLOAT:
      return tensor::DType::kF32;
    case ::tensorflow::DT_DOUBLE:
      return tensor::DType::kF64;
    case ::tensorflow::DT_HALF:
      return tensor::DType::kF16;
    case ::tensorflow::DT_BFLOAT16:
      return tensor::DType::kBF16;
    case ::tensorflow::DT_INT32:
      return tensor::DType::kInt32;
    case ::tensorflow::DT_INT64:
      return tensor::DType::kInt64;
    default:
      return absl::nullopt;
  }
}

}  // namespace tensorflow
}  // namespace penstock

#endif  // PENSTOCK_FRAMEWORKS_TENSORFLOW_TEAM_VALUES_H_
