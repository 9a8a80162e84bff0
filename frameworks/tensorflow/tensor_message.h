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

// Returns an answer with `tensor`, which must be in host memory. A tensor with
// plain bytes is sent as these bytes; other tensors (strings, variants,
// resources) are sent as TensorFlow's protobuf. The answer shares the tensor's
// memory. `may_change` tells the receiver not to use that memory in place.
// Returns INTERNAL, like grpc, if a tensor without plain bytes exceeds
// protobuf's limit.
absl::StatusOr<rpc::Response> EncodeTensor(const ::tensorflow::Tensor& tensor,
                                           bool is_dead, bool may_change);

// Estimates the cost of EncodeTensor(), as the number of bytes that could be
// copied in the same time.
size_t EncodingWork(const ::tensorflow::Tensor& tensor);

// Sets `*result`, after its InitAlloc(), to the tensor of an answer. Uses the
// received memory in place if the result is for a CPU and LentTensor() accepts
// the memory. Otherwise copies to memory of the result's allocator. Returns
// INTERNAL for a malformed answer.
absl::Status DecodeTensor(const rpc::Response& response,
                          ::tensorflow::TensorResponse* result);

// Estimates the cost of DecodeTensor(), as the number of bytes that could be
// copied in the same time. Returns 0 if the tensor may share the response's
// memory.
size_t DecodingWork(const rpc::Response& response);

// Returns the tensor's bytes, with a share of the memory. The tensor must not
// have strings.
memory::Bytes BytesOf(const ::tensorflow::Tensor& tensor);

}  // namespace tensorflow
}  // namespace penstock

#endif  // PENSTOCK_FRAMEWORKS_TENSORFLOW_TENSOR_MESSAGE_H_
