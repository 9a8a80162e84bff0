// Accepts connections on a TCP socket.

#ifndef PENSTOCK_TRANSPORT_PROGRESS_ACCEPTOR_H_
#define PENSTOCK_TRANSPORT_PROGRESS_ACCEPTOR_H_

#include <sys/socket.h>

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "transport/base/limited_log.h"
#include "transport/base/mutex.h"
#include "transport/base/unique_fd.h"
#include "transport/progress/event_loop.h"

namespace penstock {
namespace progress {

// Listens at `address`, with a non-blocking socket. Returns the system's error
// on failure.
absl::StatusOr<base::UniqueFd> ListenAt(const sockaddr_storage& address,
                                        socklen_t size);

// Returns the port of a socket, or the system's error.
absl::StatusOr<int> PortOf(int fd);

// Accepts connections on the loop's thread. Thread-safe.
class Acceptor : public std::enable_shared_from_this<Acceptor> {
 public:
  // All callbacks run on the loop's thread.
  struct Callbacks {
    // Receives a connection, whose socket is non-blocking, and the peer's
    // address.
    std::function<void(base::UniqueFd, const sockaddr_storage&)> accepted;
    // Closes the least valuable connection, to make room for a new one. Returns
    // false if there is no connection to close. Called when the process has no
    // free descriptors.
    std::function<bool()> make_room;
    // Returns true if clients must wait in the backlog for now. May be null.
    std::function<bool()> is_full;
  };

  // Takes ownership of a socket of ListenAt().
  static absl::StatusOr<std::shared_ptr<Acceptor>> Begin(
      EventLoop* loop, base::UniqueFd listening, Callbacks callbacks);
  int port() const { return port_; }
  // Soon closes the socket and drops the callbacks. A callback may still be
  // running when Stop() returns.
  void Stop();

 private:
  Acceptor(EventLoop* loop, base::UniqueFd listening, int port,
           Callbacks callbacks);

  absl::Status Watch();
  void OnReadable();
  bool AcceptOne();
  void PauseFor(absl::Duration pause);

  EventLoop* const loop_;
  const int port_;
  // The listening socket. After Begin(), used only on the loop's thread.
  base::UniqueFd listening_;
  Callbacks callbacks_;
  base::LimitedLog log_;

  base::Mutex mu_;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  EventLoop::Id watch_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace progress
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PROGRESS_ACCEPTOR_H_
