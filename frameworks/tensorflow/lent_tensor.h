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

// Returns a tensor that lies where `bytes` do, and shares their owner; nothing
// if it has to be copied instead: since the bytes are not aligned as TensorFlow
// wants them, or as this process holds as many lent bytes as it may.
// TensorFlow does not write to such a tensor, since it does not own its memory,
// but may keep it for ever: assigned to a variable, it is that variable. Needs
// as many bytes as the tensor has. Thread-safe.
absl::optional<::tensorflow::Tensor> LentTensor(
    ::tensorflow::DataType dtype, const ::tensorflow::TensorShape& shape,
    const memory::Bytes& bytes);

// Sets how many bytes may be held; see docs/tensorflow.md.
void SetMaxHeldBytes(uint64_t bytes);
// Returns how many are held.
uint64_t HeldBytes();

}  // namespace tensorflow
}  // namespace penstock

#endif  // PENSTOCK_FRAMEWORKS_TENSORFLOW_LENT_TENSOR_H_
