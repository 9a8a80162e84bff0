// Accepts peers that know a token.

#ifndef PENSTOCK_TRANSPORT_FABRIC_SHM_LISTENER_H_
#define PENSTOCK_TRANSPORT_FABRIC_SHM_LISTENER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transport/fabric/attempt.h"
#include "transport/fabric/shm/address.h"
#include "transport/fabric/shm/options.h"
#include "transport/fabric/shm/peer_socket.h"
#include "transport/fabric/shm/peer_user.h"
#include "transport/fabric/shm/setup_message.h"
#include "transport/progress/event_loop.h"

namespace penstock {
namespace fabric {
namespace shm {

// One listening socket. A connection's first packet decides: with a token that
// is waited for it becomes an endpoint, else it is closed, and nothing else is
// touched. Thread-safe; works on the event loop's thread.
class Listener : public std::enable_shared_from_this<Listener> {
 public:
  static absl::StatusOr<std::shared_ptr<Listener>> Create(Options options);
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener();

  const SocketAddress& address() const { return address_; }
  // This is a copy in a forked child.
  bool IsForeign() const;

  // Finishes `attempt` when a peer shows its token, or the time is over.
  absl::Status Expect(std::shared_ptr<Attempt> attempt);
  // Unless its token stands for another attempt by now.
  void Forget(const Attempt& attempt);

 private:
  struct HalfOpen {
    PeerSocket socket;
    PeerUser peer;
    progress::EventLoop::Id watch = 0;
    progress::EventLoop::Id timer = 0;
  };

  Listener(Options options, SocketAddress address, PeerSocket socket,
           progress::EventLoop* loop);

  absl::Status Watch();
  void AcceptOnLoop();
  void PauseOnLoop();
  void AcceptedOnLoop(PeerSocket socket);
  bool HasPlaceLocked(const PeerUser& peer) const;
  void AddHalfOpenOnLoop(PeerSocket socket, const PeerUser& peer);
  // The half-open connection `key` has sent, hung up or run out of time.
  void DecideOnLoop(uint64_t key);
  HalfOpen TakeHalfOpen(uint64_t key);
  std::shared_ptr<Attempt> TakeAttempt(const std::string& token);
  absl::StatusOr<std::unique_ptr<Endpoint>> Welcome(HalfOpen half_open,
                                                    ReceivedSetup hello);

  const Options options_;
  const SocketAddress address_;
  const PeerSocket socket_;
  progress::EventLoop* const loop_;
  const uint32_t fork_count_;

  std::mutex mu_;  // guards all below
  progress::EventLoop::Id watch_ = 0;
  uint64_t next_key_ = 1;
  std::map<uint64_t, HalfOpen> half_open_;
  std::map<std::string, std::shared_ptr<Attempt>> expected_;
};

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_LISTENER_H_
