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

// How often a waiting thread asks whether it is interrupted. A person does not
// notice the delay, and the questions cost nothing beside the wait.
constexpr absl::Duration kAskEvery = absl::Milliseconds(100);

// Convert a small protobuf message to a gRPC message and back. ToProto()
// returns INVALID_ARGUMENT if the bytes are no such message, are compressed and
// damaged, or lie on a device.
grpc::ByteBuffer FromProto(const google::protobuf::MessageLite& message);
absl::Status ToProto(const grpc::ByteBuffer& bytes,
                     google::protobuf::MessageLite* message);

// Returns the time `timeout` from now, by gRPC's monotonic clock.
gpr_timespec DeadlineAfter(absl::Duration timeout);

// Runs calls side by side. The thread in Wait() makes their progress; no other
// thread is needed. Not thread-safe.
//
// The messages are raw because gRPC's typed stubs abort the process if a
// request cannot be encoded, and do not say why a reply cannot be decoded. Here
// the caller gets a Status in both cases.
class CallQueue {
 public:
  // `interrupted` may be empty. Otherwise Wait() calls it about every 100 ms.
  // Once it returns true, all calls are cancelled, and it is not called again.
  explicit CallQueue(std::function<bool()> interrupted = nullptr);
  // Blocks until every started call has ended.
  ~CallQueue();
  CallQueue(const CallQueue&) = delete;
  CallQueue& operator=(const CallQueue&) = delete;

  // Sends the metadata with each call that is started later.
  void AddMetadata(std::string key, std::string value);

  // Starts a call of `method`, "/package.Service/Method". Waits for the
  // connection, if it is not up yet. The call ends with DEADLINE_EXCEEDED after
  // `timeout`. The reply may be received into `posted`, unless that is null.
  void Start(const std::shared_ptr<grpc::Channel>& channel,
             const std::string& method, const grpc::ByteBuffer& request,
             absl::Duration timeout, const PostedRanges* posted = nullptr);

  // Waits for something that must have happened before a call is started. Asks
  // `is_done` again and again, until it returns true, or an error, which this
  // returns. Takes the wait from `*timeout`. Returns DEADLINE_EXCEEDED when no
  // time is left, and CANCELLED once the queue is interrupted.
  absl::Status Await(absl::FunctionRef<absl::StatusOr<bool>()> is_done,
                     absl::Duration* timeout);

  struct Result {
    absl::Status status;
    grpc::ByteBuffer reply;  // if the status is OK
  };

  // Blocks until every started call has ended. Returns the results in the order
  // of the starts. The queue is empty afterwards.
  std::vector<Result> Wait();

  // Blocks until nothing uses `posted` any more, but not for longer than it
  // takes to give up a dead connection. Returns whether that is so.
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
