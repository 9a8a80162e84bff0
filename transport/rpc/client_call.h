// The client's side of a call.

#ifndef PENSTOCK_TRANSPORT_RPC_CLIENT_CALL_H_
#define PENSTOCK_TRANSPORT_RPC_CLIENT_CALL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transport/rpc/call.h"
#include "transport/rpc/call_connection.h"
#include "transport/rpc/outgoing_call.h"

namespace penstock {
namespace rpc {

//   state     event                          action                 next
//   kWaiting  Start                          send the request       kOpen
//   kOpen     the answer's end, a reset      report                 kOver
//   kOpen     Cancel                         reset, report          kOver
//   kWaiting  TakeUnsent                     return the report      kOver
//
// A unary call of a client. Reports once, on the loop's thread, without locks.
class ClientCall final : public OutgoingCall,
                         public std::enable_shared_from_this<ClientCall> {
 public:
  using Done = std::function<void(absl::StatusOr<Response>)>;

  // Makes a call with the encoded request `head`.
  ClientCall(std::string head, memory::Payload payload, Done done)
      : head_(std::move(head)),
        payload_(std::move(payload)),
        done_(std::move(done)) {}

  void Start(CallConnection* connection) override;
  void Cancel(const absl::Status& why) override;
  Unsent TakeUnsent() override {
    return state_ == State::kWaiting ? TakeDone() : nullptr;
  }

 private:
  enum class State { kWaiting, kOpen, kOver };

  void OnHeaders(absl::string_view metadata) override;
  void OnMessage(const memory::Payload& message, bool compressed) override;
  void OnMessageTooLarge(uint64_t bytes) override;
  void OnHalfClose() override;
  void OnTrailers(absl::string_view metadata) override;
  void OnReset(const absl::Status& status, bool from_peer) override;
  void OnSendAccepted() override {}

  Done TakeDone() {
    state_ = State::kOver;
    return std::exchange(done_, nullptr);
  }
  // Resets the stream on both sides, and reports `why` as the result.
  void Abort(const absl::Status& why);
  void FinishWithError(End end);
  void Finish(absl::StatusOr<Response> result);

  std::string head_;
  memory::Payload payload_;
  Done done_;
  State state_ = State::kWaiting;
  CallConnection* connection_ = nullptr;
  std::shared_ptr<ClientCall> self_;  // set while the call is open
  uint32_t stream_ = 0;
  bool has_message_ = false;
  Response response_;
};

}  // namespace rpc
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_RPC_CLIENT_CALL_H_
