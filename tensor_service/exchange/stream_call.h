// Makes one streaming call with raw messages.

#ifndef PENSTOCK_TENSOR_SERVICE_EXCHANGE_STREAM_CALL_H_
#define PENSTOCK_TENSOR_SERVICE_EXCHANGE_STREAM_CALL_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/byte_buffer.h"

namespace penstock::tensor {

// A streaming call. Each function blocks the calling thread, which drives the
// call's progress. Not thread-safe.
class StreamCall {
 public:
  // Starts a call of `method`, "/package.Service/Method", like
  // CallQueue::Start(). Blocking functions call `interrupted`, unless it is
  // empty, about every 100 ms, and cancel the call once `interrupted` returns
  // true.
  StreamCall(const std::shared_ptr<grpc::Channel>& channel, std::string method,
             absl::Duration timeout,
             std::function<bool()> interrupted = nullptr);
  // Cancels the call, unless Finish() was called.
  ~StreamCall();
  StreamCall(const StreamCall&) = delete;
  StreamCall& operator=(const StreamCall&) = delete;

  // These block until done. They return false if the stream has ended, and
  // Finish() then returns the reason. Write() returns once gRPC accepts the
  // next message, so the peer's speed limits the bytes in memory.
  bool Write(const grpc::ByteBuffer& message);
  bool WritesDone();
  bool Read(grpc::ByteBuffer* message);

  // Blocks until the call has ended. Call it once.
  absl::Status Finish();

 private:
  bool Wait();

  const std::string method_;
  std::function<bool()> interrupted_;  // empty once it has returned true
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
  bool finished_ = false;
};

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_EXCHANGE_STREAM_CALL_H_
