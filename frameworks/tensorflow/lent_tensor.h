// Tensors in memory that a peer has lent.

#ifndef PENSTOCK_FRAMEWORKS_TENSORFLOW_LENT_TENSOR_H_
#define PENSTOCK_FRAMEWORKS_TENSORFLOW_LENT_TENSOR_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/optional.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.pb.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace tensorflow {

// Returns a tensor that uses `bytes` in place and shares their owner. Returns
// nothing if the bytes must be copied, because they are not aligned for
// TensorFlow, or because this process already holds the maximum of lent bytes.
// `bytes` must have the size of the tensor.
//
// TensorFlow does not write to such a tensor, because the tensor does not own
// its memory. But TensorFlow may keep the tensor forever: a tensor that is
// assigned to a variable becomes the variable. Thread-safe.
absl::optional<::tensorflow::Tensor> LentTensor(
    ::tensorflow::DataType dtype, const ::tensorflow::TensorShape& shape,
    const memory::Bytes& bytes);

// Sets the maximum of lent bytes that this process may hold; see
// docs/tensorflow.md.
void SetMaxHeldBytes(uint64_t bytes);
// Returns the number of lent bytes that this process holds.
uint64_t HeldBytes();

}  // namespace tensorflow
}  // namespace penstock

#endif  // PENSTOCK_FRAMEWORKS_TENSORFLOW_LENT_TENSOR_H_
