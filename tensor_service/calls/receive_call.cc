#include "tensor_service/calls/receive_call.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tensor_service/prepared_destinations.h"
#include "tensor_service/text.h"

namespace penstock::tensor {
namespace {

// Blocks until the transport may write to the destinations. Subtracts the wait
// from `*timeout`.
absl::Status AwaitReady(CallQueue* queue,
                        absl::Span<const Destination> destinations,
                        absl::Duration* timeout) {
  const Destination* unready = nullptr;
  absl::Status status = queue->Await(
      [&]() -> absl::StatusOr<bool> {
        absl::StatusOr<const Destination*> found = FindUnready(destinations);
        if (!found.ok()) return found.status();
        unready = *found;
        return unready == nullptr;
      },
      timeout);
  if (status.ok() || unready == nullptr) return status;
  return absl::Status(
      status.code(),
      absl::StrCat("wait until work on ", unready->into.device().ToString(),
                   " has released destination ", Quoted(unready->name), ": ",
                   status.message()));
}

}  // namespace

absl::StatusOr<grpc::ByteBuffer> CallAndReceive(
    CallQueue* queue, const std::shared_ptr<grpc::Channel>& channel,
    const std::string& method, const grpc::ByteBuffer& request,
    absl::Duration timeout, const PostedRanges* posted,
    absl::Span<Destination>* destinations) {
  if (posted != nullptr) {
    absl::Status ready = AwaitReady(queue, *destinations, &timeout);
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
  // Waits until the transport has released the memory. Does not wait if the
  // reply is in a destination, because the reply still uses the memory.
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
