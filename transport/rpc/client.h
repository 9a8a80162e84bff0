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
  // Made by Client::Open().
  OutgoingStream(std::shared_ptr<ClientStream> stream,
                 std::function<void()> cancel)
      : stream_(std::move(stream)), cancel_(std::move(cancel)) {}
  OutgoingStream(const OutgoingStream&) = delete;
  OutgoingStream& operator=(const OutgoingStream&) = delete;
  // Cancels the stream.
  ~OutgoingStream() { cancel_(); }

  // Sends a message, in the order of the calls. Keeps the memory alive until
  // the peer has received the message. `accepted` may be null. `is_last`
  // half-closes the stream behind the message, as HalfClose() does.
  void Write(memory::Payload message, Accepted accepted, bool is_last = false);
  // Tells the server that no message follows. Drops later messages.
  void HalfClose();
  // Takes the next message of the server, in the order of the calls. The server
  // may send more when messages are taken. After an error that the server did
  // not send, unread messages are lost.
  void Read(Received received);
  // Ends the stream with CANCELLED, and tells the handler. Does nothing if the
  // stream has ended.
  void Cancel() { cancel_(); }

 private:
  const std::shared_ptr<ClientStream> stream_;
  const std::function<void()> cancel_;
};

// Returns the default keepalive. Pings a peer after half a minute without
// input. Gives up the peer after another minute without input, because the
// peer's machine is gone or its process was stopped.
connection::Keepalive::Config DefaultKeepalive();

// A client of one server. Thread-safe. Connects once: if the connection is
// lost, the client is over and its calls fail. If the server takes no new
// calls, the client is over when its open calls have ended. In a forked child,
// calls of the parent's clients fail with UNAVAILABLE.
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
    // Limits of each message; negative means no limit. Above them, calls fail
    // with RESOURCE_EXHAUSTED.
    int64_t max_receive_bytes = -1;
    int64_t max_send_bytes = -1;
    CallbackThread callbacks = CallbackThread::kLoop;
    // Ends calls after request.timeout. If false, the program cancels such
    // calls itself, and saves a timer for each call. The handler learns of the
    // timeout in both cases.
    bool enforces_timeouts = true;
  };
  // Identifies a call. Never 0 and never reused.
  using CallId = uint64_t;
  // Receives the answer of a call. Callbacks run on the threads of
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
  // Ends the connection. Open calls fail, perhaps after the destructor returns.
  // No call of `closed` begins afterwards, but a running call may continue.
  ~Client();

  // Starts a call. Calls `done` once, with the response or with an error:
  //  - the status of the handler;
  //  - UNAVAILABLE if there is no connection or the connection is lost (the
  //    handler may have run), or if the server takes no new calls;
  //  - DEADLINE_EXCEEDED after request.timeout.
  //
  // Calls that start before the connection exists wait for the connection.
  CallId Call(Request request, Done done);
  // Opens a stream. Messages are written, so request.payload must be empty.
  // Calls `metadata` when the server's metadata or first message has arrived,
  // and not if the stream ends without both. Calls `end` once, with the
  // server's end or with an error as Call() does, behind the callbacks of
  // earlier Write() and Read() calls. Messages may then be left to read.
  std::unique_ptr<OutgoingStream> Open(
      const Request& request, std::function<void(std::string)> metadata,
      std::function<void(End)> end);
  // Ends a call with CANCELLED, and tells the handler. Does nothing if the call
  // has been answered.
  void Cancel(CallId call);

  // Returns true if the connection is lost or could not be made, or if the
  // server takes no new calls. Returns true before any call fails for these
  // reasons.
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
