// Sessions with an shm path, with a victim on either side.

#ifndef PENSTOCK_TESTS_ADVERSARY_SHM_SESSION_H_
#define PENSTOCK_TESTS_ADVERSARY_SHM_SESSION_H_

#include <cstdint>
#include <memory>
#include <string>

#include "tests/adversary/peer.h"
#include "tests/adversary/shm_peer.h"
#include "tests/adversary/victim.h"

namespace penstock::adversary {

// How long the last close() of a TCP socket blocks its caller.
constexpr int kLingerSeconds = 6;

// Sends the message with `count` such sockets. The victim's close() of each is
// the last one.
void PassSockets(Victim* victim, SetupSocket* socket,
                 const std::string& message, int count);

// A path in use. If there can be none, the test fails and it is null.
struct ShmSession {
  std::unique_ptr<SetupListener> listener;  // a server's
  std::unique_ptr<Peer> peer;
  std::unique_ptr<ShmPath> path;
};

ShmSession ReachShm(Victim* victim);

// How far a server goes in a client's set-up.
enum class Moment {
  kGreeted,    // it offers a path
  kConnected,  // it has accepted the client's connection
  kAsked,      // it has the client's memory
  kWelcomed,   // the client has its own, and has said that it is ready
  kReady,      // it has said so too
  kCalled,     // a call has come over the path
};

std::string Welcome();

// A server that has gone to `moment` and no further.
struct ShmServer {
  ShmServer(Victim* victim, Moment moment);

  std::unique_ptr<SetupListener> listener = std::make_unique<SetupListener>();
  SharedMemory memory{page::kRing + page::kRingBytes};
  std::unique_ptr<VictimMemory> victim_memory;  // once it has come
  std::unique_ptr<Peer> peer;
  // Null if it is not connected yet; or if it cannot be, which fails the test.
  std::unique_ptr<SetupSocket> socket;
};

// Rings until the victim says that the path is lost. Returns false if the
// session ends, or nothing comes.
bool AwaitPathLost(Peer* peer);

// Expects that the session goes on over its lifeline when its path is lost:
// that a call of the peer's, or all of the victim's own, are served.
void ExpectCallOverLifeline(Victim* victim, Peer* peer);

// The same, once both sides have agreed that there is no path. With `may_lose`,
// the victim may have lost calls before.
void ExpectCall(Victim* victim, Peer* peer, bool may_lose = false);

// Answers the victim's call on that stream, which has come, and expects that it
// ends well.
void ExpectAnswered(Victim* victim, Peer* peer, uint32_t stream);

// Expects that the victim's call has ended as in stock gRPC when the connection
// is lost, or when the deadline is over.
Outcome ExpectCallLost(Victim* victim);

}  // namespace penstock::adversary

#endif  // PENSTOCK_TESTS_ADVERSARY_SHM_SESSION_H_
