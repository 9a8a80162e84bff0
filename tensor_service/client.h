// A client of the TensorExchange service.

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

// The default size above which bundles are sent in parts, in bytes: half of the
// default capacity of Penstock's pool of shared memory. A message that does not
// fit into the pool goes over tcp, and takes twice the time.
inline constexpr size_t kPartsAbove = size_t{512} << 20;

// A client of one TensorExchange service. Sends tensors of kCopyBelowBytes and
// more from the caller's memory. Returns tensors that share the memory of the
// received message.
//
// Put() and Get() send bundles that are too long for one message in parts, like
// PutStream() and GetStream().
//
// Each call blocks until the answer comes or the timeout expires. The timeout
// includes the wait for a connection, and for device work that must finish
// before the tensors are read. Errors have the service's code and name the
// method and the peer.
//
// Thread-safe. Calls of several threads run in parallel.
class TensorClient {
 public:
  // Makes a client. For bundles above 4 MiB, make `channel` with
  // UnlimitedMessages().
  //
  // The waiting thread calls `interrupted`, unless it is empty, about every 100
  // ms. Once `interrupted` returns true, the call is cancelled. A cancelled
  // call returns CANCELLED, or the answer if that came first.
  //
  // Bundles of more than `parts_above` bytes are sent in parts of at most that
  // size. A bundle that comes from a device or may go to a device is sent in
  // one message, if it has less than about 4 GiB.
  explicit TensorClient(std::shared_ptr<grpc::Channel> channel,
                        absl::Duration timeout = absl::Seconds(60),
                        std::function<bool()> interrupted = nullptr,
                        size_t parts_above = kPartsAbove);

  // Stores the tensors, and returns how many bytes the service then holds. The
  // tensors' memory must not change before Put() returns. Writing through a
  // Tensor is always safe, because a Tensor copies its memory first.
  //
  // A program that wraps memory of penstock::Allocator itself must not change
  // that memory while it is shared, because over shm the service continues to
  // use it.
  absl::StatusOr<size_t> Put(const Bundle& bundle);

  // Stores the bundle's tensors, then the views as tensors. Sends one message.
  // Sends a view's elements in place if a copy would cost more; see
  // IsSentInPlace().
  absl::StatusOr<size_t> Put(const Bundle& bundle,
                             absl::Span<const NamedView> views);

  // Returns the named tensors, in the order of `names`. A tensor with a
  // destination is received into the destination. Returns NOT_FOUND if a tensor
  // is missing. `device_tensors` applies to tensors without a destination that
  // are on the service's device. Such tensors need a transport that reaches the
  // device and a receiver (direct_receive.h).
  absl::StatusOr<Bundle> Get(
      const std::vector<std::string>& names,
      absl::Span<Destination> destinations = {},
      DeviceTensors device_tensors = DeviceTensors::kToHost);
  absl::StatusOr<Bundle> Get(const std::vector<std::string>& names,
                             PreparedDestinations* destinations);

  // Stores the tensors. Returns the tensors that were replaced. A replaced
  // tensor with a destination is received into the destination; others are
  // returned like those of Get(). Sends one message each way.
  absl::StatusOr<Bundle> Exchange(
      const Bundle& bundle, absl::Span<Destination> destinations = {},
      DeviceTensors device_tensors = DeviceTensors::kToHost);
  absl::StatusOr<Bundle> Exchange(const Bundle& bundle,
                                  PreparedDestinations* destinations);

  // Deletes the named tensors, and returns how many of the names existed.
  absl::StatusOr<size_t> Delete(const std::vector<std::string>& names);

  // Like Put() and Get(), for bundles and tensors that are too long for one
  // message. Messages have at most about `max_message_bytes`; 0 selects
  // kStreamMessageBytes. Longer tensors are also sent in place, but the
  // receiver copies their pieces together. If the stream is cut, nothing is
  // stored.
  //
  // GetStream() returns tensors on the host or in their destinations, which are
  // filled by a copy. Returns RESOURCE_EXHAUSTED if the names and the tensors
  // without a destination exceed `max_bytes`; 0 selects the machine's memory.
  // The check precedes each allocation.
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
  // A call, and the rest of its timeout.
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
  // `posted` is the destinations' memory that the transport already knows, or
  // null.
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
