// Calls TensorExchange.

#ifndef PENSTOCK_TENSOR_SERVICE_CLIENT_H_
#define PENSTOCK_TENSOR_SERVICE_CLIENT_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "grpcpp/channel.h"
#include "grpcpp/support/byte_buffer.h"
#include "tensor_service/destination.h"
#include "tensor_service/device_tensors.h"
#include "tensor_service/direct_receive.h"
#include "tensor_service/prepared_destinations.h"
#include "tensor_service/strided.h"
#include "tensor_service/tensor.h"

namespace penstock::tensor {

// Calls a TensorExchange service. Sends tensors of kCopyBelowBytes and more
// from the caller's memory. Returns tensors that share the memory of the
// received message.
//
// Each call blocks until the answer comes or the timeout is over. The timeout
// includes the wait for a connection, and, but in streams, for work on devices
// that the tensors come after. Errors have the service's code and name
// the method and the peer.
//
// Thread-safe. Calls of several threads run side by side.
class TensorClient {
 public:
  // For bundles above 4 MiB, make `channel` with UnlimitedMessages().
  //
  // A call asks `interrupted`, unless it is empty, about every 100 ms on the
  // thread that waits. Once that returns true the call is cancelled, and
  // returns CANCELLED unless the answer was there first.
  explicit TensorClient(std::shared_ptr<grpc::Channel> channel,
                        absl::Duration timeout = absl::Seconds(60),
                        std::function<bool()> interrupted = nullptr);

  // Stores the tensors, and returns how many bytes the service holds then. The
  // tensors' memory must not change until this returns; memory of
  // penstock::Allocator that the program has wrapped itself, not before it is
  // no longer shared, as over shm the service goes on using it. Writing through
  // a Tensor is always safe, as it copies first.
  absl::StatusOr<size_t> Put(const Bundle& bundle);

  // As above, with the views as tensors after those of the bundle. Sends a
  // view's elements in place where that is cheaper; see IsSentInPlace().
  absl::StatusOr<size_t> Put(const Bundle& bundle,
                             absl::Span<const NamedView> views);

  // Returns the named tensors, in the order of `names`; those that have one of
  // `destinations` are received into it. Returns NOT_FOUND if one is missing.
  // `device_tensors` says what becomes of others that lie on a device of the
  // service's, if the transport reaches that and has a receiver
  // (direct_receive.h).
  absl::StatusOr<Bundle> Get(
      const std::vector<std::string>& names,
      absl::Span<Destination> destinations = {},
      DeviceTensors device_tensors = DeviceTensors::kToHost);
  absl::StatusOr<Bundle> Get(const std::vector<std::string>& names,
                             PreparedDestinations* destinations);

  // Stores the tensors, and returns those that were replaced; those that have
  // one of `destinations` are received into it, others as by Get().
  absl::StatusOr<Bundle> Exchange(
      const Bundle& bundle, absl::Span<Destination> destinations = {},
      DeviceTensors device_tensors = DeviceTensors::kToHost);
  absl::StatusOr<Bundle> Exchange(const Bundle& bundle,
                                  PreparedDestinations* destinations);

  // Deletes the named tensors, and returns how many of the names existed.
  absl::StatusOr<size_t> Delete(const std::vector<std::string>& names);

  // As Put() and Get(), for bundles and tensors that are too long for one
  // message. Messages have at most about `max_message_bytes`; 0 is
  // kStreamMessageBytes. Tensors longer than that are sent in place too, but
  // the receiver copies their pieces together. If the stream is cut, nothing is
  // stored. What GetStream() returns lies on the host. It returns
  // RESOURCE_EXHAUSTED once tensors and their names take more than `max_bytes`,
  // before it allocates memory for the one that does; 0 is the machine's
  // memory.
  absl::StatusOr<size_t> PutStream(const Bundle& bundle,
                                   size_t max_message_bytes = 0);
  absl::StatusOr<Bundle> GetStream(const std::vector<std::string>& names,
                                   size_t max_message_bytes = 0,
                                   size_t max_bytes = 0);

  struct Entry {
    std::string name;
    DType dtype;
    Shape shape;
  };
  // Returns names, types and shapes of all tensors, in the order of the names.
  absl::StatusOr<std::vector<Entry>> List();

 private:
  // A call, and what is left of its timeout.
  struct Attempt;

  absl::StatusOr<grpc::ByteBuffer> Call(const char* method,
                                        const grpc::ByteBuffer& request);
  absl::StatusOr<grpc::ByteBuffer> Call(Attempt* attempt, const char* method,
                                        const grpc::ByteBuffer& request);
  absl::StatusOr<grpc::ByteBuffer> EncodeOnceWritten(
      Attempt* attempt, const Bundle& bundle,
      absl::Span<const NamedView> views = {});
  // `posted` is what was posted of the destinations, or null.
  absl::StatusOr<Bundle> Receive(Attempt* attempt, const char* method,
                                 const grpc::ByteBuffer& request,
                                 absl::Span<Destination> destinations,
                                 const PostedRanges* posted,
                                 DeviceTensors device_tensors);

  const std::shared_ptr<grpc::Channel> channel_;
  const absl::Duration timeout_;
  const std::function<bool()> interrupted_;
};

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_CLIENT_H_
