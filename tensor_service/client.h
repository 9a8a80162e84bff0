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

// Bundles of more bytes than that go in parts, unless a client says otherwise.
// Half of what Penstock's pool of shared memory holds by default: a message for
// which the pool has no room goes over tcp, and takes twice the time. In bytes.
inline constexpr size_t kPartsAbove = size_t{512} << 20;

// Calls a TensorExchange service. Sends tensors of kCopyBelowBytes and more
// from the caller's memory. Returns tensors that share the memory of the
// received message.
//
// Put() and Get() send in parts what is too long for one message, as
// PutStream() and GetStream() do.
//
// Each call blocks until the answer comes or the timeout is over. The timeout
// includes the wait for a connection, and for work on devices that the tensors
// come after. Errors have the service's code and name
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
  //
  // Bundles of more than `parts_above` bytes go in parts, of as many bytes at
  // most. What comes from a device, or is to come to one, goes whole up to
  // nearly 4 GiB.
  explicit TensorClient(std::shared_ptr<grpc::Channel> channel,
                        absl::Duration timeout = absl::Seconds(60),
                        std::function<bool()> interrupted = nullptr,
                        size_t parts_above = kPartsAbove);

  // Stores the tensors, and returns how many bytes the service holds then. The
  // tensors' memory must not change until this returns; memory of
  // penstock::Allocator that the program has wrapped itself, not before it is
  // no longer shared, as over shm the service goes on using it. Writing through
  // a Tensor is always safe, as it copies first.
  absl::StatusOr<size_t> Put(const Bundle& bundle);

  // As above, with the views as tensors after those of the bundle. Sends a
  // view's elements in place where that is cheaper; see IsSentInPlace(). Sends
  // one message.
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
  // one of `destinations` are received into it, others as by Get(). Sends one
  // message each way.
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
  // stored. What GetStream() returns lies on the host, or in a destination, to
  // which it is copied. It returns RESOURCE_EXHAUSTED once tensors without a
  // destination and their names take more than `max_bytes`, before it allocates
  // memory for the one that does; 0 is the machine's memory.
  absl::StatusOr<size_t> PutStream(const Bundle& bundle,
                                   size_t max_message_bytes = 0);
  absl::StatusOr<Bundle> GetStream(const std::vector<std::string>& names,
                                   size_t max_message_bytes = 0,
                                   size_t max_bytes = 0,
                                   absl::Span<Destination> destinations = {});

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

  size_t part_bytes() const;
  absl::StatusOr<size_t> PutInParts(Attempt* attempt, const Bundle& bundle,
                                    size_t max_message_bytes);
  absl::StatusOr<Bundle> GetInParts(Attempt* attempt,
                                    const std::vector<std::string>& names,
                                    size_t max_message_bytes, size_t max_bytes,
                                    absl::Span<Destination> destinations);
  absl::StatusOr<Bundle> GetAny(const std::vector<std::string>& names,
                                absl::Span<Destination> destinations,
                                const PostedRanges* posted,
                                DeviceTensors device_tensors);
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
  const size_t parts_above_;
};

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_CLIENT_H_
