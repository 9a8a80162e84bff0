// The server's side of a call.

#ifndef PENSTOCK_TRANSPORT_RPC_SERVER_CALL_H_
#define PENSTOCK_TRANSPORT_RPC_SERVER_CALL_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "transport/record/recorder.h"
#include "transport/rpc/call.h"
#include "transport/rpc/call_connection.h"
#include "transport/rpc/stream_messages.h"

namespace penstock {
namespace rpc {

//   state       event                        action              next
//   kReceiving  the request's end            call the handler    kHandled
//   kReceiving  a stream's head              call the handler    kHandled
//   kReceiving  a malformed request          answer with why     kOver
//   kHandled    Respond, Finish              send the answer     kOver
//   kHandled    a reset or a lost            run neither         kOver
//               connection, before the
//               handler runs
//   any         a reset, a lost connection   run on_cancel       kOver
//
// A call that a server has received. Thread-safe: takes the connection's lock,
// except for events.
class ServerCall final : public session::StreamEvents,
                         public std::enable_shared_from_this<ServerCall> {
 public:
  // A function that handles a request or a stream once its head has arrived.
  // Called on the loop's thread, without locks.
  using Handler = std::function<void(std::shared_ptr<ServerCall>)>;

  // `placer` may be null. `place` counts the call against
  // Options::max_handled_calls, and is kept until the last reference to the
  // call is dropped.
  ServerCall(std::shared_ptr<CallConnection> connection, uint32_t stream,
             Handler handler, std::shared_ptr<const Placer> placer,
             std::shared_ptr<const void> place)
      : connection_(std::move(connection)),
        stream_(stream),
        place_(std::move(place)),
        placer_(std::move(placer)),
        handler_(std::move(handler)) {}

  // Attaches the call to its stream. Call once, under the connection's lock.
  void Attach();

  // Returns the request, which does not change after the handler was called.
  const Request& request() const { return request_; }
  memory::Payload TakePayload() {
    return std::exchange(request_.payload, memory::Payload());
  }
  // Returns true for a stream. Does not change after the handler was called.
  bool is_stream() const { return messages_.has_value(); }
  const std::string& peer() const { return connection_->peer(); }
  void Respond(absl::StatusOr<Response> response);
  // Functions of a stream; see IncomingStream.
  void SendMetadata(absl::string_view metadata);
  void Write(const memory::Payload& message, Accepted accepted);
  void Read(Received received);
  void EndStream(End end);
  // Runs `cancelled` once, as a callback, when the client has gone or has
  // cancelled the call. No run begins after Respond() or EndStream().
  void OnCancel(std::function<void()> cancelled);

 private:
  enum class State { kReceiving, kHandled, kOver };

  void OnHeaders(absl::string_view metadata) override;
  void OnMessage(const memory::Payload& message, bool compressed) override;
  void OnMessageTooLarge(uint64_t bytes) override;
  void OnHalfClose() override;
  void OnTrailers(absl::string_view metadata) override;
  void OnReset(const absl::Status& status, bool from_peer) override;
  void OnSendAccepted() override {
    if (is_stream()) messages_->OnSendAccepted();
  }

  void Refuse(const absl::Status& why);
  void Send(absl::StatusOr<Response> response);
  // Schedules on_cancel_. Does not run it if the handler answers first.
  void TellHandler();
  void RunOnCancel();
  void BeginStream();
  // Schedules the handler. Does not run it if the call is reset first.
  void CallHandler();
  void RunHandler();
  // Releases the objects that only the handler needs, if the handler has not
  // run.
  void DropHandler();
  // Returns true if the handler can no longer affect the call. Then also drops
  // on_cancel_, because the handler has answered.
  bool IsOverForHandler();
  void DropOnCancel();
  // Sends the trailers and ends the call.
  void SendEnd(const End& end);
  void Finish();

  const std::shared_ptr<CallConnection> connection_;
  const uint32_t stream_;
  const std::shared_ptr<const void> place_;
  const std::shared_ptr<const Placer> placer_;
  // True from CallHandler() on. RunHandler() or DropHandler() resets the flag;
  // whichever resets it owns handler_, and may change request_.
  std::atomic<bool> has_handler_{false};
  Handler handler_;
  // The connection's lock guards the members below. Exception: request_ may be
  // read without the lock once the request has arrived.
  State state_ = State::kReceiving;
  std::shared_ptr<ServerCall> self_;  // set while the stream is attached
  Request request_;
  bool has_head_ = false;
  bool has_message_ = false;
  bool cancelled_ = false;
  bool has_answered_ = false;  // a stream's metadata or first message was sent
  absl::optional<StreamMessages> messages_;  // of a stream
  std::function<void()> on_cancel_;
  record::RecordedCall recorded_;
};

}  // namespace rpc
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_RPC_SERVER_CALL_H_
