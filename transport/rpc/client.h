// The client: one connection, and calls on it.

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

// Pings a peer of which nothing was heard for half a minute, and gives it up
// after a minute more: its machine is gone, or it was stopped.
connection::Keepalive::Config DefaultKeepalive();

// Thread-safe. Connects once: when the connection is lost, the client is over,
// and so are its calls. In the child of a fork, calls of clients that were made
// before fail with UNAVAILABLE.
class Client {
 public:
  struct Options {
    std::string target;  // "host:port"
    std::string token;   // that the server was started with
    Settings settings;
    progress::PollingMode polling = progress::PollingMode::kAdaptive;
    // For the name, the connection and the greeting together.
    absl::Duration connect_timeout = absl::Seconds(10);
    connection::Keepalive::Config keepalive = DefaultKeepalive();
    int64_t max_receive_bytes = -1;  // of one answer; negative: no limit
  };
  // Identifies a call. Never 0, and never used again.
  using CallId = uint64_t;
  // Callbacks run on the thread of progress::EventLoop::GetPolling(), without
  // locks, and never within a call of a function of the client. Callbacks must
  // not block, but may call every function of the client, and destroy it.
  using Done = std::function<void(absl::StatusOr<Response>)>;
  using Closed = std::function<void(const absl::Status&)>;

  // Begins to connect. Calls `closed` once, when the client is over: after the
  // calls have been told. Returns an error for a bad target, or where no thread
  // can be had.
  static absl::StatusOr<std::unique_ptr<Client>> Connect(Options options,
                                                         Closed closed);
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  // Ends the connection. Open calls fail, perhaps after this returns. No
  // call of `closed` begins any more, but one may be under way.
  ~Client();

  // Makes a call, and calls `done` once with the answer, or with why there is
  // none: the handler's status; UNAVAILABLE if there is no connection or it is
  // lost (the handler may have run); DEADLINE_EXCEEDED after request.timeout.
  // Calls made before there is a connection wait for it.
  CallId Call(Request request, Done done);
  // Ends a call with CANCELLED, and tells the handler. Does nothing to a call
  // that has been answered.
  void Cancel(CallId call);

  // Returns true if the connection is lost, or cannot be made. Returns true
  // before any call is told so.
  bool is_over() const;
  // Returns nothing while there is no connection.
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
