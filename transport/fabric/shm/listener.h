// Accepts peers that show a token.

#ifndef PENSTOCK_TRANSPORT_FABRIC_SHM_LISTENER_H_
#define PENSTOCK_TRANSPORT_FABRIC_SHM_LISTENER_H_

#include <cstdint>
#include <map>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "transport/base/mutex.h"
#include "transport/fabric/attempt.h"
#include "transport/fabric/awaited_tokens.h"
#include "transport/fabric/shm/address.h"
#include "transport/fabric/shm/options.h"
#include "transport/fabric/shm/peer_socket.h"
#include "transport/fabric/shm/peer_user.h"
#include "transport/fabric/shm/setup_message.h"
#include "transport/progress/event_loop.h"

namespace penstock {
namespace fabric {
namespace shm {

// Listens at one socket. If the first packet of a connection has an awaited
// token, makes an endpoint. Otherwise closes the connection. Works on the event
// loop's thread. Thread-safe.
//
// A connection is half-open until its first packet. A half-open connection
// belongs to no attempt yet, and has no TimedSetup with a time limit. Therefore
// this class limits the number of half-open connections of each user, and their
// time. A connection beyond the limit takes the place of the oldest one. Silent
// peers thus keep nobody out, because other peers send their packet
// immediately.
class Listener : public std::enable_shared_from_this<Listener> {
 public:
  // Listens at a new address.
  static absl::StatusOr<std::shared_ptr<Listener>> Create(Options options);
  // Listens at `address`, which must have no directory. The name must be as
  // long as a name of NewSocketName().
  static absl::StatusOr<std::shared_ptr<Listener>> CreateAt(
      SocketAddress address, Options options);
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener();

  const SocketAddress& address() const { return address_; }
  // Returns true in a forked child, where this object is a copy of the
  // parent's.
  bool IsForeign() const;

  // Finishes `attempt` when a peer shows its token, or when the time is over.
  // Destroying the handle cancels the attempt.
  std::unique_ptr<PendingConnect> Expect(std::shared_ptr<Attempt> attempt);

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
  // Stops accepting for a while.
  void PauseOnLoop();
  void AcceptedOnLoop(PeerSocket socket);
  // Returns the half-open connection that must end before `peer` gets one, if
  // there are too many: the oldest of the users that have at least half of
  // them. Users other than this process's never have more than half.
  absl::optional<uint64_t> ExcessLocked(const PeerUser& peer) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Reads once more from that connection, and drops it if it is silent.
  void MakeRoomOnLoop(const PeerUser& peer);
  void AddHalfOpenOnLoop(PeerSocket socket, const PeerUser& peer);
  // Decides on the half-open connection `key`. Called when the connection has
  // sent a packet, has hung up, has run out of time, or must make room.
  void DecideOnLoop(uint64_t key);
  // Removes and returns the half-open connection with this key. Returns an
  // object without a socket if there is none.
  HalfOpen TakeHalfOpen(uint64_t key);
  // Answers the peer, and makes the endpoint.
  absl::StatusOr<std::unique_ptr<Endpoint>> Welcome(HalfOpen half_open,
                                                    ReceivedSetup hello);

  const Options options_;
  const SocketAddress address_;
  const PeerSocket socket_;
  progress::EventLoop* const loop_;
  const uint32_t fork_count_;
  const std::shared_ptr<AwaitedTokens> awaited_;

  base::Mutex mu_;
  progress::EventLoop::Id watch_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t next_key_ ABSL_GUARDED_BY(mu_) = 1;
  std::map<uint64_t, HalfOpen> half_open_ ABSL_GUARDED_BY(mu_);
};

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_LISTENER_H_
