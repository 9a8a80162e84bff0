// The messages of a stream, in both directions.

#ifndef PENSTOCK_TRANSPORT_RPC_STREAM_MESSAGES_H_
#define PENSTOCK_TRANSPORT_RPC_STREAM_MESSAGES_H_

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "transport/base/fifo.h"
#include "transport/memory/bytes.h"
#include "transport/rpc/call.h"
#include "transport/rpc/call_connection.h"

namespace penstock {
namespace rpc {

// Stores the messages that the program has not read, the reads that wait for a
// message, and the writes that wait for the peer. The stream's window bounds
// the unread messages: the peer gets credit when the program reads a message.
// Call all functions under the connection's lock. Callbacks run later, on the
// loop's thread, without locks, in the order of the calls.
class StreamMessages {
 public:
  // Refers to `connection`, which must live until End().
  StreamMessages(CallConnection* connection, uint32_t stream)
      : connection_(connection), stream_(stream) {}

  // Functions for the program; see OutgoingStream. Write() fails if this side
  // may not send the message; the caller then ends the stream.
  absl::Status Write(const memory::Payload& message, Accepted accepted,
                     bool is_last = false);
  void Read(Received received);
  // Sends the half-close of a client.
  void HalfClose();

  // Functions for events. OnMessage() fails if the peer may not send the
  // message; the caller then ends the stream.
  absl::Status OnMessage(const memory::Payload& message, bool compressed);
  void OnSendAccepted();
  // Handles the end of the peer's messages: later reads report the end.
  void OnInputEnd();
  // Ends both directions. Unread messages stay readable.
  void End();
  // Ends both directions, and drops unread messages.
  void Drop();

  bool input_ended() const { return input_ended_; }

 private:
  void Give(Received received, absl::optional<memory::Payload> message);
  void Report(Accepted accepted, bool is_accepted);

  CallConnection* const connection_;
  const uint32_t stream_;
  // At least one of these two queues is empty.
  base::Fifo<memory::Payload> unread_;
  base::Fifo<Received> reads_;
  base::Fifo<Accepted> writes_;  // not accepted yet
  bool input_ended_ = false;
  bool output_ended_ = false;
};

}  // namespace rpc
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_RPC_STREAM_MESSAGES_H_
