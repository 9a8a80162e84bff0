// Calls TensorExchange.

#ifndef PENSTOCK_TENSOR_SERVICE_CLIENT_H_
#define PENSTOCK_TENSOR_SERVICE_CLIENT_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "grpcpp/support/byte_buffer.h"
#include "tensor_service/tensor.h"

namespace penstock::tensor {

// Payloads leave from the caller's memory and arrive as references into the
// received message. Each call blocks, at most for the timeout, which also
// covers a connection that is still to come up; errors carry the service's
// code and name the method and the peer.
//
// Thread-safe: calls of several threads run side by side.
class TensorClient {
 public:
  // Make `channel` with UnlimitedMessages() for bundles above 4 MiB.
  explicit TensorClient(std::shared_ptr<grpc::Channel> channel,
                        absl::Duration timeout = absl::Seconds(60));

  // The bytes that the service holds then. Until it returns the memory of the
  // tensors must not change; Tensor sees to that by copy on write.
  absl::StatusOr<size_t> Put(const Bundle& bundle);

  absl::StatusOr<Bundle> Get(const std::vector<std::string>& names);

  // Put that gives back what it replaced.
  absl::StatusOr<Bundle> Exchange(const Bundle& bundle);

  // How many of the names there were.
  absl::StatusOr<size_t> Delete(const std::vector<std::string>& names);

  struct Entry {
    std::string name;
    DType dtype;
    Shape shape;
  };
  absl::StatusOr<std::vector<Entry>> List();

 private:
  absl::StatusOr<grpc::ByteBuffer> Call(const char* method,
                                        const grpc::ByteBuffer& request);

  const std::shared_ptr<grpc::Channel> channel_;
  const absl::Duration timeout_;
};

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_CLIENT_H_
