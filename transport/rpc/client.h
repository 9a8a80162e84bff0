// A client: one connection, and calls on the connection.

#ifndef PENSTOCK_TRANSPORT_RPC_CLIENT_H_
#define PENSTOCK_TRANSPORT_RPC_CLIENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "transport/connection/keepalive.h"
#include "transport/progress/spin_policy.h"
#include "transport/rpc/call.h"
#include "transport/session/counters.h"
#include "transport/session/events.h"
#include "transport/settings/settings.h"

namespace penstock {
namespace rpc {

class ClientStream;

// A stream of a client: a call with any number of messages in each direction.
// Thread-safe.
class OutgoingStream {
 public:
  // Called by Client::Open() only.
  OutgoingStream(std::shared_ptr<ClientStream> stream,
                 std::function<void()> cancel)
      : stream_(std::move(stream)), cancel_(std::move(cancel)) {}
  OutgoingStream(const OutgoingStream&) = delete;
  OutgoingStream& operator=(const OutgoingStream&) = delete;
  // Cancels the stream.
  ~OutgoingStream() { cancel_(); }

  // Sends a message, after the messages of earlier calls. Keeps the memory
  // alive until the peer has received the message. `accepted` may be null. If
  // `is_last`, half-closes the stream after the message, as HalfClose() does.
  void Write(memory::Payload message, Accepted accepted, bool is_last = false);
  // Tells the server that no message follows. Drops later messages.
  void HalfClose();
  // Receives the server's next message. Each call receives one message, in the
  // order of the calls. Each received message lets the server send more. If the
  // stream fails with an error that the server did not send, unread messages
  // are lost.
  void Read(Received received);
  // Ends the stream with CANCELLED, and tells the server's handler. Does
  // nothing if the stream has ended.
  void Cancel() { cancel_(); }

 private:
  const std::shared_ptr<ClientStream> stream_;
  const std::function<void()> cancel_;
};

// Returns the default keepalive. Pings a peer after half a minute without
// input. Considers the peer dead after another minute without input: its
// machine is gone, or its process was stopped.
connection::Keepalive::Config DefaultKeepalive();

// A client of one server. Thread-safe. Connects once: if the connection is
// lost, the client is unusable and its calls fail. If the server shuts down
// gracefully, the client becomes unusable when its open calls have ended. In a
// forked child, calls of the parent's clients fail with UNAVAILABLE.
class Client {
 public:
  struct Options {
    std::string target;  // "host:port"
    std::string token;   // the server's token
    Settings settings;
    progress::PollingMode polling = progress::PollingMode::kAdaptive;
    // The timeout of name resolution, connection and greeting together.
    absl::Duration connect_timeout = absl::Seconds(10);
    connection::Keepalive::Config keepalive = DefaultKeepalive();
    // Limit the size of a message. Negative means no limit. Calls with a larger
    // message fail with RESOURCE_EXHAUSTED.
    int64_t max_receive_bytes = -1;
    int64_t max_send_bytes = -1;
    CallbackThread callbacks = CallbackThread::kLoop;
    // If true, the client ends a call after request.timeout. If false, the
    // program cancels such calls itself, which saves a timer for each call. In
    // both cases the server's handler learns of the timeout.
    bool enforces_timeouts = true;
  };
  // Identifies a call. Never 0 and never reused.
  using CallId = uint64_t;
  // Called with the answer of a call. Callbacks run on the threads of
  // Options::callbacks, one after another, without locks, and never within a
  // function of the client. Callbacks must not block. They may call every
  // function of the client, and may destroy the client.
  using Done = std::function<void(absl::StatusOr<Response>)>;
  using Closed = std::function<void(const absl::Status&)>;

  // Returns a client, and starts to connect. Calls `closed` once when the
  // client is over, after the `done` of its calls. Fails if the target is
  // malformed, or if no thread can be started.
  static absl::StatusOr<std::unique_ptr<Client>> Connect(Options options,
                                                         Closed closed);
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  // Ends the connection. Open calls fail, perhaps after the destructor has
  // returned. Afterwards `closed` is not called, but a call of `closed` may
  // still be running.
  ~Client();

  // Ends the connection, as the destructor does. Later calls fail.
  void Close();

  // Starts a call. Calls `done` once, with the response or with an error:
  //  - the status of the handler;
  //  - UNAVAILABLE if there is no connection or the connection is lost (the
  //    handler may have run), or if the server takes no new calls;
  //  - DEADLINE_EXCEEDED after request.timeout.
  //
  // Calls that start before the connection exists wait for the connection.
  CallId Call(Request request, Done done);
  // Opens a stream. request.payload must be empty, because messages are sent by
  // Write(). Calls `metadata` when the server's metadata or first message has
  // arrived. If the stream ends before, does not call `metadata`. Calls `end`
  // once, after the callbacks of earlier Write() and Read() calls. `end` gets
  // the server's end, or an error as in Call(). Unread messages may be left
  // then.
  std::unique_ptr<OutgoingStream> Open(
      const Request& request, std::function<void(std::string)> metadata,
      std::function<void(End)> end);
  // Ends a call with CANCELLED, and tells the server's handler. Does nothing if
  // the call has been answered.
  void Cancel(CallId call);

  // Returns true if the connection is lost or could not be made, or if the
  // server takes no new calls. A caller sees true before it sees a call fail
  // for one of these reasons.
  bool is_over() const;
  // Returns the path of the connection, or nothing if there is no connection.
  absl::optional<session::PathDescription> DescribePath() const;
  session::Counters counters() const;

 private:
  class Core;

  explicit Client(std::shared_ptr<Core> core) : core_(std::move(core)) {}

  const std::shared_ptr<Core> core_;
};

}  // namespace rpc
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_RPC_CLIENT_H_
