// The fresh sockets of a server.

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

// Keeps connections until their clients have shown the token, and drops those
// that are too many: the oldest of the host that has the most. Takes clients
// with the token first and never drops them. Logs dropped connections, within
// an allowance of its own: strangers take no line from the rest of the process.
// Lives on the loop's thread.
class Greeters : public std::enable_shared_from_this<Greeters> {
 public:
  // Called with each client that has the token.
  using Done = std::function<void(Greeted)>;

  Greeters(progress::EventLoop* loop, const std::string& token, Done done);

  // Takes a connection that has been accepted.
  void Begin(base::UniqueFd socket, const sockaddr_storage& peer);
  // Drops the connection that is worth least. Returns false if there is none.
  bool MakeRoom();
  // Closes all connections, and lets go of the callback.
  void Stop();

 private:
  using Id = progress::HalfOpenTable::Id;

  void OnDone(Id id, const std::string& peer, absl::StatusOr<Greeted> greeted);

  progress::EventLoop* const loop_;
  const std::string token_;
  Done done_;  // null: stopped
  progress::HalfOpenTable table_;
  std::map<Id, std::shared_ptr<Greeter>> greeters_;
  base::LimitedLog log_;
  const metrics::Level shown_limit_;
  metrics::Level shown_;
};

}  // namespace rpc
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_RPC_GREETERS_H_
