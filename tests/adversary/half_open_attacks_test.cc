// Tests peers that start a connection and then fall silent, to use up the
// places for half-open connections.

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "tests/adversary/attack.h"
#include "tests/adversary/shm_peer.h"
#include "tests/adversary/wire.h"

namespace penstock::adversary {
namespace {

// The number of connections that may negotiate at once (docs/security.md). The
// attack opens kIdle connections.
constexpr int kPlaces = 4096;
constexpr int kIdle = kPlaces + 32;
// The time after which the server has ended all unfinished connections: 5 s for
// the hello, 15 s for the path, and a margin for a busy machine.
constexpr std::chrono::seconds kEndOfIdleness(30);
// The timeout of a path that is being set up.
constexpr std::chrono::seconds kEndOfSetUp(3);

bool MayOpen(rlim_t files) {
  rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur >= files) return true;
  limit.rlim_cur = std::min(limit.rlim_max, files);
  return setrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur >= files;
}

Options RequireTcp() {
  Options options;
  options.policy = Policy::kRequire;
  options.fabrics = {Fabric::kTcp};
  return options;
}

bool AwaitEnd(Peer* peer, std::chrono::steady_clock::time_point until) {
  while (!peer->AwaitEnd()) {
    if (std::chrono::steady_clock::now() > until) return false;
  }
  return true;
}

// Expects that the first connections end and free their places. A client that
// requires tcp must then be served. While no place was free, the bystander may
// have connected over HTTP/2.
void ExpectPlacesAgain(Victim* victim,
                       const std::vector<std::unique_ptr<Peer>>& peers) {
  const auto until = std::chrono::steady_clock::now() + kEndOfIdleness;
  for (int i = 0; i < kPlaces / 2; ++i) {
    ASSERT_TRUE(AwaitEnd(peers[i].get(), until)) << "connection " << i;
  }
  const grpc::Status status =
      Echo(NewChannel(victim->port(), RequireTcp()).get(), 8);
  EXPECT_TRUE(status.ok()) << status.error_message();
}

// Makes peers that offer shm, send a hello, and go silent.
void OfferShmAndStayAway(Victim* victim) {
  std::vector<std::unique_ptr<Peer>> peers;
  for (int i = 0; i < kIdle; ++i) {
    peers.push_back(victim->TrySession(ShmHello()));
    // Stops when a peer is refused. Further peers can connect only after the
    // first peers have left.
    if (peers.back() == nullptr) break;
  }
  ASSERT_GE(peers.size(), size_t{kPlaces});
  victim->AwaitCalls();
  ExpectPlacesAgain(victim, peers);
}

// Negotiates and sends no hello.
void NegotiateAndStayAway(Victim* victim) {
  std::vector<std::unique_ptr<Peer>> peers;
  for (int i = 0; i < kIdle; ++i) {
    peers.push_back(victim->NewConnection());
    peers.back()->Write(ClientPreface());
  }
  victim->AwaitCalls();
  ExpectPlacesAgain(victim, peers);
}

// Attacks a server that requires shm, by a call from a client that sets up no
// shm. The server must serve nothing over tcp to such a client, neither during
// the set-up nor afterwards.
void CallWithoutShm(Peer* peer) {
  const uint32_t stream = peer->OpenStream(RequestMetadata("/victim/Reply"));
  peer->Queue(FrameOf(type::kMessage, stream, "1 8"));
  peer->Queue(FrameOf(type::kHalfClose, stream));
  peer->Flush();
  while (absl::optional<Peer::Received> received =
             peer->NextIfAny(kEndOfSetUp)) {
    const uint8_t type = received->frame.type;
    if (type == type::kTrailers || type == type::kReset) return;
    ASSERT_FALSE(type == type::kMessage || type == type::kAnnounce)
        << "a call was served over tcp";
  }
}

void CallDuringTheSetUp(Victim* victim) {
  CallWithoutShm(victim->NewSession(ShmHello()).get());
}

// Makes a call without shm after the victim has reported the loss of the path.
void CallAfterTheSetUp(Victim* victim) {
  std::unique_ptr<Peer> peer = victim->NewSession(ShmHello());
  if (!peer->Await(type::kPathLost).has_value()) return;  // ended: as well
  CallWithoutShm(peer.get());
}

Attack Crowd(const char* name, void (*run)(Victim*)) {
  Attack attack = {name, run};
  // Allows for the buffers of each connection, in gRPC and in Penstock.
  attack.limits.memory = uint64_t{kIdle} * 96 * 1024;
  return attack;
}

Attack OnShmServer(const char* name, void (*run)(Victim*)) {
  Attack attack = {name, run};
  attack.victim.environment = {"PENSTOCK_POLICY=require",
                               "PENSTOCK_FABRICS=shm"};
  attack.victim.has_tcp = false;
  return attack;
}

const Attack kOnServers[] = {
    Crowd("SessionsThatOfferShmAndStayAwayLeaveTheirPlaces",
          OfferShmAndStayAway),
    Crowd("SessionsWithoutAHelloLeaveTheirPlaces", NegotiateAndStayAway),
    OnShmServer("NothingIsServedOverTcpDuringTheSetUpOfRequiredShm",
                CallDuringTheSetUp),
    OnShmServer("NothingIsServedOverTcpAfterTheSetUpOfRequiredShm",
                CallAfterTheSetUp),
};

TEST_P(AgainstServer, NobodyIsHarmed) {
  if (!MayOpen(2 * kIdle)) {
    GTEST_SKIP() << "this needs " << 2 * kIdle << " open files (ulimit -n)";
  }
  Run();
}

INSTANTIATE_TEST_SUITE_P(HalfOpen, AgainstServer,
                         ::testing::ValuesIn(kOnServers), NameOfTest);

}  // namespace
}  // namespace penstock::adversary
