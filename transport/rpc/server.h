// The server: a port of its own, and a handler for the calls that come there.

#ifndef PENSTOCK_TRANSPORT_RPC_SERVER_H_
#define PENSTOCK_TRANSPORT_RPC_SERVER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
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

// A call that came, for its handler. If the handler lets go of it without an
// answer, it is answered with INTERNAL. Thread-safe.
class IncomingCall {
 public:
  explicit IncomingCall(std::shared_ptr<ServerCall> call)
      : call_(std::move(call)) {}
  IncomingCall(const IncomingCall&) = delete;
  IncomingCall& operator=(const IncomingCall&) = delete;
  ~IncomingCall();

  const Request& request() const;
  // The client's address, for people.
  const std::string& peer() const;
  // Answers. Only the first answer counts, and none after the client has gone.
  void Respond(absl::StatusOr<Response> response);
  // Runs `cancelled` once when the client is gone or does not want the answer
  // any more, perhaps soon; never after Respond(). Call it once.
  void OnCancel(std::function<void()> cancelled);

 private:
  const std::shared_ptr<ServerCall> call_;
};

// Thread-safe.
class Server {
 public:
  struct Options {
    // A number and a port, of which 0 is any.
    std::string address = "0.0.0.0:0";
    // Anybody with this token may call; 1 to 64 bytes. Sent unencrypted.
    std::string token;
    Settings settings;
    progress::PollingMode polling = progress::PollingMode::kAdaptive;
    connection::Keepalive::Config keepalive = DefaultKeepalive();
    int64_t max_receive_bytes = 64 * 1024 * 1024;  // of one request's payload
    uint32_t max_calls = 100 * 1000;  // of one client, open at once
  };
  // Callbacks, and those of IncomingCall, run on the thread of
  // progress::EventLoop::GetPolling(), without locks. Callbacks must not block.
  using Handler = std::function<void(std::shared_ptr<IncomingCall>)>;

  // Returns the system's error if the address cannot be had, and
  // INVALID_ARGUMENT for a bad option.
  static absl::StatusOr<std::unique_ptr<Server>> Start(Options options,
                                                       Handler handler);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  // Ends all connections, but not in the child of a fork. When it returns, no
  // handler runs or will run; unless a callback calls it. Calls may still be
  // answered, in vain.
  ~Server();

  int port() const;

  struct Description {
    std::string peer;
    session::PathDescription path;
    session::Counters counters;
  };
  // One for each connection.
  std::vector<Description> Describe() const;

 private:
  class Core;

  explicit Server(std::shared_ptr<Core> core) : core_(std::move(core)) {}

  const std::shared_ptr<Core> core_;
};

}  // namespace rpc
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_RPC_SERVER_H_
