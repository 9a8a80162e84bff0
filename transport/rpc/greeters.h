// A server's new sockets, until each client has shown the token.

#ifndef PENSTOCK_TRANSPORT_RPC_GREETERS_H_
#define PENSTOCK_TRANSPORT_RPC_GREETERS_H_

#include <sys/socket.h>

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "transport/base/limited_log.h"
#include "transport/base/unique_fd.h"
#include "transport/metrics/registry.h"
#include "transport/progress/event_loop.h"
#include "transport/progress/half_open_table.h"
#include "transport/rpc/greeter.h"

namespace penstock {
namespace rpc {

// The connections of clients that have not shown the token yet. If there are
// too many, drops the oldest connection of the host with the most connections.
// Before dropping a connection, checks if its token has arrived, so that a
// client with the token is never dropped. Dropped connections have a log limit
// of their own, so that strangers cannot use up the process's log lines. Runs
// on the loop's thread.
class Greeters : public std::enable_shared_from_this<Greeters> {
 public:
  // Receives each client that has shown the token.
  using Done = std::function<void(Greeted)>;

  Greeters(progress::EventLoop* loop, const std::string& token, Done done);

  // Adds an accepted connection.
  void Begin(base::UniqueFd socket, const sockaddr_storage& peer);
  // Reads once more from the oldest connection of the host with the most
  // connections. Drops that connection if its client still has not sent the
  // token. Returns false if there are no connections.
  bool MakeRoom();
  // Closes all connections, and releases the callback.
  void Stop();

 private:
  using Id = progress::HalfOpenTable::Id;

  void OnDone(Id id, const std::string& peer, absl::StatusOr<Greeted> greeted);

  progress::EventLoop* const loop_;
  const std::string token_;
  Done done_;  // null when stopped
  progress::HalfOpenTable table_;
  std::map<Id, std::shared_ptr<Greeter>> greeters_;
  base::LimitedLog log_;
  const metrics::Level shown_limit_;
  metrics::Level shown_;
};

}  // namespace rpc
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_RPC_GREETERS_H_
