// Sessions with an shm path to a victim on either side.

#ifndef PENSTOCK_TESTS_ADVERSARY_SHM_SESSION_H_
#define PENSTOCK_TESTS_ADVERSARY_SHM_SESSION_H_

#include <cstdint>
#include <memory>
#include <string>

#include "tests/adversary/peer.h"
#include "tests/adversary/shm_peer.h"
#include "tests/adversary/victim.h"

namespace penstock::adversary {

// The seconds for which the last close() of a TCP socket blocks.
constexpr int kLingerSeconds = 6;

// Sends the message with `count` lingering sockets. The victim gets the last
// reference to each socket, so close() blocks in the victim.
void PassSockets(Victim* victim, SetupSocket* socket,
                 const std::string& message, int count);

// A path in use. If there is no path, the test fails and `path` is null.
struct ShmSession {
  std::unique_ptr<SetupListener> listener;  // only of a server
  std::unique_ptr<Peer> peer;
  std::unique_ptr<ShmPath> path;
};

ShmSession ReachShm(Victim* victim);

// The stages of a client's set-up of shared memory, as its server sees them.
enum class Moment {
  kGreeted,    // the server offers a path
  kConnected,  // the server has accepted the client's connection
  kAsked,      // the server has received the client's memory
  kWelcomed,   // the client has received the server's memory, and is ready
  kReady,      // the server is ready, too
  kCalled,     // a call has come over the path
};

std::string Welcome();

// A hostile server that stops at stage `moment`.
struct ShmServer {
  ShmServer(Victim* victim, Moment moment);

  std::unique_ptr<SetupListener> listener = std::make_unique<SetupListener>();
  SharedMemory memory{page::kRing + page::kRingBytes};
  std::unique_ptr<VictimMemory> victim_memory;  // set once received
  std::unique_ptr<Peer> peer;
  // Null before the connection. If no connection is possible, the test fails
  // and the value stays null.
  std::unique_ptr<SetupSocket> socket;
};

// Rings doorbells until the victim reports the loss of the path. Returns false
// if the session ends, or if there is no report.
bool AwaitPathLost(Peer* peer);

// Expects that the session continues over TCP after the loss of its path: the
// peer's call, or all calls of the victim, must be served.
void ExpectCallOverLifeline(Victim* victim, Peer* peer);

// Like ExpectCallOverLifeline(), for sides that have agreed to use no path. If
// `may_lose`, the victim may have lost calls before.
void ExpectCall(Victim* victim, Peer* peer, bool may_lose = false);

// Answers the victim's call on the stream, and expects that it succeeds.
void ExpectAnswered(Victim* victim, Peer* peer, uint32_t stream);

// Expects that the victim's call has ended like a stock gRPC call after a lost
// connection or an expired deadline.
Outcome ExpectCallLost(Victim* victim);

}  // namespace penstock::adversary

#endif  // PENSTOCK_TESTS_ADVERSARY_SHM_SESSION_H_
