// Finds a peer's data plane through TensorFlow's own RPCs.

#ifndef PENSTOCK_FRAMEWORKS_TENSORFLOW_HELLO_H_
#define PENSTOCK_FRAMEWORKS_TENSORFLOW_HELLO_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "tensorflow/core/protobuf/worker.pb.h"

namespace penstock {
namespace tensorflow {

// The data plane of a task: its port, and the secret that peers need to call
// it.
struct Hello {
  uint16_t port = 0;
  std::string token;
};

// Returns a RecvTensor request that no rendezvous can serve. A task without the
// plugin answers with an error. A task with the plugin recognises the request
// by its options.
::tensorflow::RecvTensorRequest HelloRequest();
bool IsHelloRequest(const ::tensorflow::RecvTensorRequest& request);

::tensorflow::RecvTensorResponse HelloResponse(const Hello& hello);
// Returns INVALID_ARGUMENT if the response comes from another release.
absl::StatusOr<Hello> ParseHello(
    const ::tensorflow::RecvTensorResponse& response);

}  // namespace tensorflow
}  // namespace penstock

#endif  // PENSTOCK_FRAMEWORKS_TENSORFLOW_HELLO_H_
