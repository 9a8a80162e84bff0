// A socket that accepts connections.

#ifndef PENSTOCK_TRANSPORT_RPC_LISTENER_H_
#define PENSTOCK_TRANSPORT_RPC_LISTENER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "transport/base/mutex.h"
#include "transport/base/unique_fd.h"
#include "transport/progress/event_loop.h"

namespace penstock {
namespace rpc {

// Thread-safe.
class Listener : public std::enable_shared_from_this<Listener> {
 public:
  // Called with each connection and the peer's address, on the loop's thread.
  using Accepted =
      std::function<void(base::UniqueFd socket, const std::string& peer)>;

  // Listens at "host:port", a number; port 0: any. Returns the system's error
  // if that cannot be had.
  static absl::StatusOr<std::shared_ptr<Listener>> Listen(
      progress::EventLoop* loop, const std::string& address, Accepted accepted);
  int port() const { return port_; }
  // Closes the socket and lets go of `accepted`, soon. A call of it may still
  // be running.
  void Stop();

 private:
  Listener(progress::EventLoop* loop, base::UniqueFd socket, int port,
           Accepted accepted);

  absl::Status Watch();
  void OnReadable();
  void PauseAccepting();

  progress::EventLoop* const loop_;
  const int port_;
  // From Listen() on of the loop's thread.
  base::UniqueFd socket_;
  Accepted accepted_;

  base::Mutex mu_;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  progress::EventLoop::Id watch_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace rpc
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_RPC_LISTENER_H_
