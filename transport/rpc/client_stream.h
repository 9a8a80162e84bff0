// The client's side of a stream.

#ifndef PENSTOCK_TRANSPORT_RPC_CLIENT_STREAM_H_
#define PENSTOCK_TRANSPORT_RPC_CLIENT_STREAM_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "transport/base/mutex.h"
#include "transport/connection/executor.h"
#include "transport/rpc/call.h"
#include "transport/rpc/call_connection.h"
#include "transport/rpc/outgoing_call.h"
#include "transport/rpc/stream_messages.h"

namespace penstock {
namespace rpc {

//   state     event                          action                 next
//   kWaiting  Start                          send the head, then    kOpen
//                                            run the early steps
//   kOpen     the end, a reset               report                 kOver
//   kOpen     Cancel, a malformed answer     reset, report          kOver
//   kWaiting  TakeUnsent                     return the report      kOver
//
// A stream of a client. Start() also runs the steps that were requested before
// Start(). Write(), Read() and HalfClose() are thread-safe. The other functions
// are called as OutgoingCall says. Reports the end once, on the loop's thread,
// without locks.
class ClientStream final : public OutgoingCall,
                           public std::enable_shared_from_this<ClientStream> {
 public:
  struct Reports {
    std::function<void(std::string)> metadata;
    std::function<void(End)> end;
  };

  // Makes a stream with the encoded request `head`. `executor` runs callbacks
  // if the stream is never started.
  ClientStream(std::string head, std::shared_ptr<connection::Executor> executor,
               Reports reports)
      : head_(std::move(head)),
        executor_(std::move(executor)),
        reports_(std::move(reports)) {}

  void Write(memory::Payload message, Accepted accepted, bool is_last);
  void Read(Received received);
  void HalfClose();

  void Start(CallConnection* connection) override;
  void Cancel(const absl::Status& why) override;
  Unsent TakeUnsent() override;

 private:
  enum class State { kWaiting, kOpen, kOver };
  // A step of the program. Gets null if the stream was never started.
  using Step = std::function<void(StreamMessages*)>;

  void Run(Step step);
  void OnHeaders(absl::string_view metadata) override;
  void OnMessage(const memory::Payload& message, bool compressed) override;
  // Resets the stream, as Abort() does. Messages received before stay readable.
  void OnMessageTooLarge(uint64_t bytes) override;
  void OnHalfClose() override;
  void OnTrailers(absl::string_view metadata) override;
  void OnReset(const absl::Status& status, bool from_peer) override;
  void OnSendAccepted() override { messages_->OnSendAccepted(); }

  void ReportMetadata(std::string metadata);
  // Resets the stream on both sides, and reports `why` as the result.
  void Abort(const absl::Status& why);
  // Ends the stream. Reports the end after the callbacks of messages.
  void Finish(End end);

  std::string head_;
  const std::shared_ptr<connection::Executor> executor_;
  // The members below are guarded as OutgoingCall says.
  Reports reports_;
  State state_ = State::kWaiting;
  std::shared_ptr<ClientStream> self_;   // set while the stream is open
  CallConnection* opened_on_ = nullptr;  // connection_, once started
  uint32_t stream_ = 0;
  bool has_answered_ = false;  // metadata or a message of the server has come
  absl::optional<StreamMessages> messages_;  // set by Start()

  base::Mutex mu_;  // may be taken under the connection's and the client's lock
  bool is_unsent_ ABSL_GUARDED_BY(mu_) = false;
  std::shared_ptr<CallConnection> connection_ ABSL_GUARDED_BY(mu_);
  std::vector<Step> early_ ABSL_GUARDED_BY(mu_);
};

}  // namespace rpc
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_RPC_CLIENT_STREAM_H_
