// Unary calls of raw messages, several at a time.

#ifndef PENSTOCK_TENSOR_SERVICE_CALLS_H_
#define PENSTOCK_TENSOR_SERVICE_CALLS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "google/protobuf/message_lite.h"
#include "grpc/support/time.h"
#include "grpcpp/channel.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/support/byte_buffer.h"

namespace penstock::tensor {

// A protobuf message as a gRPC message, and back; for what is small.
// INVALID_ARGUMENT where the bytes are no such message.
grpc::ByteBuffer FromProto(const google::protobuf::MessageLite& message);
absl::Status ToProto(const grpc::ByteBuffer& bytes,
                     google::protobuf::MessageLite* message);

// `timeout` from now, for gRPC, by a clock that nobody sets.
gpr_timespec DeadlineAfter(absl::Duration timeout);

// One completion queue for calls that run side by side. The thread that waits
// makes their progress; no other thread is needed. Not thread-safe.
//
// The raw form is there because gRPC's typed stubs abort the process on a
// request that cannot be encoded and lose the reason of a reply that cannot be
// decoded; here both are a Status.
class CallQueue {
 public:
  CallQueue();
  // Waits for what still runs.
  ~CallQueue();
  CallQueue(const CallQueue&) = delete;
  CallQueue& operator=(const CallQueue&) = delete;

  // Starts a call of "/package.Service/Method" that ends after `timeout`. The
  // connection may come up in the meantime (wait for ready).
  void Start(const std::shared_ptr<grpc::Channel>& channel,
             const std::string& method, const grpc::ByteBuffer& request,
             absl::Duration timeout);

  struct Result {
    absl::Status status;
    grpc::ByteBuffer reply;  // where the status is OK
  };

  // Blocks until every started call has ended; the results are in the order of
  // the starts, and the queue is empty again.
  std::vector<Result> Wait();

 private:
  struct Call;

  grpc::CompletionQueue queue_;
  std::vector<std::unique_ptr<Call>> calls_;
};

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_CALLS_H_
