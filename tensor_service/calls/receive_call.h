// A unary call whose reply may be received into destinations.

#ifndef PENSTOCK_TENSOR_SERVICE_CALLS_RECEIVE_CALL_H_
#define PENSTOCK_TENSOR_SERVICE_CALLS_RECEIVE_CALL_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "grpcpp/channel.h"
#include "grpcpp/support/byte_buffer.h"
#include "tensor_service/calls.h"
#include "tensor_service/destination.h"
#include "tensor_service/direct_receive.h"

namespace penstock::tensor {

// Makes the call by `queue`, which must be empty. First waits until the
// destinations may be written to. Blocks until the call has ended and the
// transport has released the destinations, or until the reply is in a
// destination. `timeout` and interruption also apply to the first wait.
// `posted` is the posted memory of the destinations, or null. If the transport
// does not release the memory in time, sets `used` of each destination to the
// error and `*destinations` to an empty span, so that the reply is not decoded
// into them.
absl::StatusOr<grpc::ByteBuffer> CallAndReceive(
    CallQueue* queue, const std::shared_ptr<grpc::Channel>& channel,
    const std::string& method, const grpc::ByteBuffer& request,
    absl::Duration timeout, const PostedRanges* posted,
    absl::Span<Destination>* destinations);

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_CALLS_RECEIVE_CALL_H_
