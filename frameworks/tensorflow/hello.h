// How a task learns, over TensorFlow's own RPCs, where a peer's data plane is.

#ifndef PENSTOCK_FRAMEWORKS_TENSORFLOW_HELLO_H_
#define PENSTOCK_FRAMEWORKS_TENSORFLOW_HELLO_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "tensorflow/core/protobuf/worker.pb.h"

namespace penstock {
namespace tensorflow {

// Where a task serves tensors, and the secret that lets its peers call there.
struct Hello {
  uint16_t port = 0;
  std::string token;
};

// Returns a RecvTensor request that no rendezvous can serve. A task without the
// plugin answers with an error; one with it knows the request by its options.
::tensorflow::RecvTensorRequest HelloRequest();
bool IsHelloRequest(const ::tensorflow::RecvTensorRequest& request);

::tensorflow::RecvTensorResponse HelloResponse(const Hello& hello);
// Returns INVALID_ARGUMENT if the response is that of another release.
absl::StatusOr<Hello> ParseHello(
    const ::tensorflow::RecvTensorResponse& response);

}  // namespace tensorflow
}  // namespace penstock

#endif  // PENSTOCK_FRAMEWORKS_TENSORFLOW_HELLO_H_
