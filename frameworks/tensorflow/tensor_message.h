// Tensors as answers of the data plane.

#ifndef PENSTOCK_FRAMEWORKS_TENSORFLOW_TENSOR_MESSAGE_H_
#define PENSTOCK_FRAMEWORKS_TENSORFLOW_TENSOR_MESSAGE_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensorflow/core/distributed_runtime/tensor_coding.h"
#include "tensorflow/core/framework/tensor.h"
#include "transport/rpc/call.h"

namespace penstock {
namespace tensorflow {

// Returns an answer with the tensor, which has to be in host memory: its bytes
// as they lie, if it has bytes; else (strings, variants, resources) as
// TensorFlow's protobuf. The answer shares the tensor's memory.
// `may_change`: the receiver is not to use that memory in place. Returns
// INTERNAL, as grpc does, if a tensor without bytes exceeds protobuf's limit.
absl::StatusOr<rpc::Response> EncodeTensor(const ::tensorflow::Tensor& tensor,
                                           bool is_dead, bool may_change);

// Returns how many bytes could be copied while EncodeTensor() works.
size_t EncodingWork(const ::tensorflow::Tensor& tensor);

// Sets `*result`, after its InitAlloc(), to the tensor of an answer: for a CPU
// in the memory in which it came, if LentTensor() can, and else in memory of
// the result's allocator. Returns INTERNAL for an answer that is malformed.
absl::Status DecodeTensor(const rpc::Response& response,
                          ::tensorflow::TensorResponse* result);

// Returns how many bytes could be copied while DecodeTensor() works.
size_t DecodingWork(const rpc::Response& response);

// Returns the tensor's bytes, and a share in them. It has no strings.
memory::Bytes BytesOf(const ::tensorflow::Tensor& tensor);

}  // namespace tensorflow
}  // namespace penstock

#endif  // PENSTOCK_FRAMEWORKS_TENSORFLOW_TENSOR_MESSAGE_H_
