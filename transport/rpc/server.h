// A server: a port, and a handler for the calls on this port.

#ifndef PENSTOCK_TRANSPORT_RPC_SERVER_H_
#define PENSTOCK_TRANSPORT_RPC_SERVER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "transport/connection/keepalive.h"
#include "transport/progress/spin_policy.h"
#include "transport/rpc/call.h"
#include "transport/rpc/client.h"
#include "transport/session/counters.h"
#include "transport/session/events.h"
#include "transport/settings/settings.h"

namespace penstock {
namespace rpc {

class ServerCall;

// A received call, for its handler. A handler that destroys the call without an
// answer answers INTERNAL. Thread-safe.
class IncomingCall {
 public:
  explicit IncomingCall(std::shared_ptr<ServerCall> call)
      : call_(std::move(call)) {}
  IncomingCall(const IncomingCall&) = delete;
  IncomingCall& operator=(const IncomingCall&) = delete;
  ~IncomingCall();

  const Request& request() const;
  // Removes and returns the request's payload, so that its memory can be freed
  // before the call ends. Only one thread may use the request meanwhile.
  memory::Payload TakePayload();
  // Returns the client's address, for logs.
  const std::string& peer() const;
  // Answers the call. Has no effect after the first answer, or after the client
  // has gone.
  void Respond(absl::StatusOr<Response> response);
  // Calls `cancelled` once, perhaps immediately, when the client has gone or
  // has cancelled the call. No call of `cancelled` begins after Respond(). Call
  // OnCancel() once.
  void OnCancel(std::function<void()> cancelled);

 private:
  const std::shared_ptr<ServerCall> call_;
};

// A received stream, for its handler. A handler that destroys the stream
// without Finish() ends it with INTERNAL. Thread-safe.
class IncomingStream {
 public:
  explicit IncomingStream(std::shared_ptr<ServerCall> call)
      : call_(std::move(call)) {}
  IncomingStream(const IncomingStream&) = delete;
  IncomingStream& operator=(const IncomingStream&) = delete;
  ~IncomingStream();

  // Returns the request, without a payload.
  const Request& request() const;
  const std::string& peer() const;
  // Sends metadata before the first message. Has no effect after the first
  // Write() or SendMetadata().
  void SendMetadata(absl::string_view metadata);
  // The functions below work as in OutgoingStream. Read() reports the end after
  // the client's half-close, and after the end of the stream.
  void Write(const memory::Payload& message, Accepted accepted);
  void Read(Received received);
  // Ends the stream after all written messages, and drops unread ones. Ends
  // with INTERNAL if the metadata is larger than kMaxTrailingBytes. Has no
  // effect after the first end, or after the client has gone.
  void Finish(End end);
  // Calls `cancelled` once, perhaps immediately, when the client has gone or
  // has cancelled the stream. No call of `cancelled` begins after Finish().
  // Call OnCancel() once.
  void OnCancel(std::function<void()> cancelled);

 private:
  const std::shared_ptr<ServerCall> call_;
};

// A server on one port. Thread-safe.
class Server {
 public:
  struct Options {
    // A numeric host and a port. Port 0 chooses a free port.
    std::string address = "0.0.0.0:0";
    // The token that gives clients access, of 1 to 64 bytes. Clients send the
    // token unencrypted.
    std::string token;
    Settings settings;
    progress::PollingMode polling = progress::PollingMode::kAdaptive;
    connection::Keepalive::Config keepalive = DefaultKeepalive();
    // Limit the size of a message. Negative means no limit. Calls with a larger
    // message fail with RESOURCE_EXHAUSTED.
    int64_t max_receive_bytes = 64 * 1024 * 1024;
    int64_t max_send_bytes = -1;
    uint32_t max_calls = 100 * 1000;  // open calls per client
    // Limits the calls of all clients that handlers are handling. A call counts
    // until its handler drops the IncomingCall or IncomingStream. Above the
    // limit, new calls fail with RESOURCE_EXHAUSTED.
    uint32_t max_handled_calls = UINT32_MAX;
    CallbackThread callbacks = CallbackThread::kLoop;
    // May be null.
    Placer placer;
  };
  // Handles a call. Callbacks, including the callbacks of IncomingCall, run on
  // the threads of Options::callbacks, without locks. Callbacks of one client
  // run one after another. Callbacks must not block.
  using Handler = std::function<void(std::shared_ptr<IncomingCall>)>;
  // Handles a stream when its head has arrived.
  using StreamHandler = std::function<void(std::shared_ptr<IncomingStream>)>;

  // Starts a server. Without `stream_handler`, ends streams with UNIMPLEMENTED.
  // Fails with the system's error if the address is unavailable, and with
  // INVALID_ARGUMENT for an invalid option.
  static absl::StatusOr<std::unique_ptr<Server>> Start(
      Options options, Handler handler, StreamHandler stream_handler = nullptr);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  // Ends all connections, except in a forked child. Blocks until all callbacks
  // have returned, unless a callback destroys the server. Later answers to
  // calls have no effect.
  ~Server();

  // Refuses new connections and calls, and lets open calls end within `grace`.
  // Then ends the connections, and the remaining calls with them. Clients of an
  // earlier release end their calls immediately. Calls `stopped` once when all
  // connections have ended, but never after ~Server(). A further call can
  // shorten the grace.
  void Shutdown(absl::Duration grace, std::function<void()> stopped);
  // Ends the connection with the client at this address; see
  // IncomingCall::peer(). Ignores an unknown address.
  void Disconnect(const std::string& peer);
  int port() const;

  struct Description {
    std::string peer;
    session::PathDescription path;
    session::Counters counters;
  };
  // Returns a description of each connection.
  std::vector<Description> Describe() const;

 private:
  class Core;

  explicit Server(std::shared_ptr<Core> core) : core_(std::move(core)) {}

  const std::shared_ptr<Core> core_;
};

}  // namespace rpc
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_RPC_SERVER_H_
