// Sessions with a shm path, whichever side the victim is.

#ifndef PENSTOCK_TESTS_ADVERSARY_SHM_SESSION_H_
#define PENSTOCK_TESTS_ADVERSARY_SHM_SESSION_H_

#include <cstdint>
#include <memory>
#include <string>

#include "tests/adversary/peer.h"
#include "tests/adversary/shm_peer.h"
#include "tests/adversary/victim.h"

namespace penstock::adversary {

// How long a TCP socket's last close() blocks whoever does it.
constexpr int kLingerSeconds = 6;

// Sends the message with so many such sockets, and so that the victim's close()
// is the last one.
void PassSockets(Victim* victim, SetupSocket* socket,
                 const std::string& message, int count);

// A path that is in use. Where that was not to be had, which is a failure, it
// is null.
struct ShmSession {
  std::unique_ptr<SetupListener> listener;  // a server's
  std::unique_ptr<Peer> peer;
  std::unique_ptr<ShmPath> path;
};

ShmSession ReachShm(Victim* victim);

// How far a server goes along with a client's set-up.
enum class Moment {
  kGreeted,    // it offers a path
  kConnected,  // it has accepted the client's connection
  kAsked,      // it has the client's memory
  kWelcomed,   // the client has its own, and has said that it is ready
  kReady,      // it has said so too
  kCalled,     // a call has come over the path
};

std::string Welcome();

// A server that has gone so far and no further.
struct ShmServer {
  ShmServer(Victim* victim, Moment moment);

  std::unique_ptr<SetupListener> listener = std::make_unique<SetupListener>();
  SharedMemory memory{page::kRing + page::kRingBytes};
  std::unique_ptr<VictimMemory> victim_memory;  // where it has come
  std::unique_ptr<Peer> peer;
  // Null where it is not connected yet, or cannot be, which is a failure.
  std::unique_ptr<SetupSocket> socket;
};

// Rings until the victim says that the path is lost. False where its session
// ends, or nothing comes.
bool AwaitPathLost(Peer* peer);

// The session goes on over its lifeline when its path is lost: a call of the
// peer's, or all of the victim's own, are served.
void ExpectCallOverLifeline(Victim* victim, Peer* peer);

// The same from where both sides have agreed that there is no path. `may_lose`:
// calls of the victim's may have been lost before.
void ExpectCall(Victim* victim, Peer* peer, bool may_lose = false);

// The victim's call on that stream, which has come, is answered.
void ExpectAnswered(Victim* victim, Peer* peer, uint32_t stream);

// The victim's call has ended as one does in stock gRPC whose connection is
// lost, or whose time is over.
Outcome ExpectCallLost(Victim* victim);

}  // namespace penstock::adversary

#endif  // PENSTOCK_TESTS_ADVERSARY_SHM_SESSION_H_
