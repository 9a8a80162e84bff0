// Makes unary calls with raw messages, several at a time.

#ifndef PENSTOCK_TENSOR_SERVICE_CALLS_H_
#define PENSTOCK_TENSOR_SERVICE_CALLS_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "google/protobuf/message_lite.h"
#include "grpc/support/time.h"
#include "grpcpp/channel.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/support/byte_buffer.h"
#include "tensor_service/direct_receive.h"

namespace penstock::tensor {

// The interval at which a waiting thread checks for an interruption: short
// enough for a person not to notice, and long enough for the checks to cost
// almost nothing.
constexpr absl::Duration kAskEvery = absl::Milliseconds(100);

// Convert a small protobuf message to a gRPC message and back. ToProto()
// returns INVALID_ARGUMENT if the bytes are not such a message, are damaged by
// compression, or are on a device.
grpc::ByteBuffer FromProto(const google::protobuf::MessageLite& message);
absl::Status ToProto(const grpc::ByteBuffer& bytes,
                     google::protobuf::MessageLite* message);

// Returns the time `timeout` from now, by gRPC's monotonic clock.
gpr_timespec DeadlineAfter(absl::Duration timeout);

// Runs calls in parallel. The thread in Wait() drives their progress; no other
// thread is needed. Not thread-safe.
//
// Uses raw messages, because gRPC's typed stubs abort the process if a request
// cannot be encoded, and do not explain why a reply cannot be decoded. This
// class returns a Status in both cases.
class CallQueue {
 public:
  // Makes an empty queue. Wait() calls `interrupted`, unless it is empty, about
  // every 100 ms. Once `interrupted` returns true, all calls are cancelled, and
  // `interrupted` is not called again.
  explicit CallQueue(std::function<bool()> interrupted = nullptr);
  // Blocks until every started call has ended.
  ~CallQueue();
  CallQueue(const CallQueue&) = delete;
  CallQueue& operator=(const CallQueue&) = delete;

  // Adds metadata to every call that is started later.
  void AddMetadata(std::string key, std::string value);

  // Starts a call of `method`, "/package.Service/Method". The call waits for
  // the connection if necessary, and ends with DEADLINE_EXCEEDED after
  // `timeout`. The reply may be received into `posted`, unless `posted` is
  // null.
  void Start(const std::shared_ptr<grpc::Channel>& channel,
             const std::string& method, const grpc::ByteBuffer& request,
             absl::Duration timeout, const PostedRanges* posted = nullptr);

  // Waits for the precondition of a later call. Calls `is_done` repeatedly, and
  // blocks until `is_done` returns true or an error. Subtracts the wait from
  // `*timeout`. Returns the error of `is_done`, DEADLINE_EXCEEDED if no time is
  // left, or CANCELLED if the queue is interrupted.
  absl::Status Await(absl::FunctionRef<absl::StatusOr<bool>()> is_done,
                     absl::Duration* timeout);

  struct Result {
    absl::Status status;
    grpc::ByteBuffer reply;  // set if the status is OK
  };

  // Blocks until every started call has ended. Returns the results in the order
  // in which the calls started. Leaves the queue empty.
  std::vector<Result> Wait();

  // Blocks until nothing uses `posted` any more, for at most the time after
  // which a dead connection is closed. Returns true if `posted` is free.
  bool AwaitFree(const PostedRanges& posted);

 private:
  struct Call;

  void AwaitOne();
  bool IsInterrupted();

  std::function<bool()> interrupted_;  // empty once it has returned true
  grpc::CompletionQueue queue_;
  std::vector<std::pair<std::string, std::string>> metadata_;
  std::vector<std::unique_ptr<Call>> calls_;
};

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_CALLS_H_
