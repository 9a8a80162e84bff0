#include "tensor_service/receive_call.h"

#include <utility>

#include "tensor_service/prepared_destinations.h"

namespace penstock::tensor {

absl::StatusOr<grpc::ByteBuffer> CallAndReceive(
    CallQueue* queue, const std::shared_ptr<grpc::Channel>& channel,
    const std::string& method, const grpc::ByteBuffer& request,
    absl::Duration timeout, const PostedRanges* posted,
    absl::Span<Destination>* destinations) {
  if (posted != nullptr) {
    absl::Status ready = AwaitReady(*destinations);
    if (!ready.ok()) {
      Refuse(ready, *destinations);
      return ready;
    }
  }
  queue->Start(channel, method, request, timeout, posted);
  CallQueue::Result result = std::move(queue->Wait().front());
  if (!result.status.ok()) {
    Refuse(result.status, *destinations);
    if (posted != nullptr) queue->AwaitFree(*posted);
    return result.status;
  }
  // What lies there has the right to the memory, and nobody else.
  if (posted != nullptr && posted->in_use() &&
      !LiesIn(result.reply, RangesOf(*destinations)) &&
      !queue->AwaitFree(*posted)) {
    Refuse(absl::UnavailableError(
               "an earlier attempt at the call may yet write there"),
           *destinations);
    *destinations = {};
  }
  return std::move(result.reply);
}

}  // namespace penstock::tensor
