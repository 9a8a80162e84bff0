// A unary call whose reply may be received into destinations.

#ifndef PENSTOCK_TENSOR_SERVICE_RECEIVE_CALL_H_
#define PENSTOCK_TENSOR_SERVICE_RECEIVE_CALL_H_

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

// Makes the call by `queue`, which has no other, once the destinations may be
// written to, and blocks until it has ended and the transport has let go of the
// destinations, but for a reply that lies there. The wait for the destinations
// is a part of `timeout`, and can be interrupted as the call can. `posted` is
// what was posted of them, or null. If the transport does not let go in time,
// sets `*destinations` to none, of which each says why: so the reply is not to
// be decoded into them.
absl::StatusOr<grpc::ByteBuffer> CallAndReceive(
    CallQueue* queue, const std::shared_ptr<grpc::Channel>& channel,
    const std::string& method, const grpc::ByteBuffer& request,
    absl::Duration timeout, const PostedRanges* posted,
    absl::Span<Destination>* destinations);

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_RECEIVE_CALL_H_
