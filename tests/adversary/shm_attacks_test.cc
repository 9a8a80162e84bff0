// Tests attacks through the set-up of shared memory.

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/adversary/attack.h"
#include "tests/adversary/odd_descriptors.h"
#include "tests/adversary/shm_peer.h"
#include "tests/adversary/shm_session.h"
#include "tests/adversary/wire.h"

namespace penstock::adversary {
namespace {

Options RequireShm() {
  Options options;
  options.policy = Policy::kRequire;
  options.fabrics = {Fabric::kShm};
  return options;
}

// Expects that later clients are immediately served over shm.
void ExpectShmForOthers(Victim* victim) {
  const auto begun = std::chrono::steady_clock::now();
  const grpc::Status status =
      Echo(NewChannel(victim->port(), RequireShm()).get(), 8);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_LT(std::chrono::steady_clock::now() - begun,
            std::chrono::seconds(kLingerSeconds - 3))
      << "a thread of the victim was held up";
}

std::string Greeting(absl::string_view token) {
  return SetupMessage(setup::kHello, page::kRingBytes, 0, token);
}

// Passes a socket where memory is expected. The victim must close the socket
// without delaying others.
void GreetWithASocket(Victim* victim) {
  std::unique_ptr<Peer> peer = victim->NewSession(ShmHello());
  SetupSocket socket(peer->peer_hello());
  PassSockets(victim, &socket, Greeting(peer->peer_hello().token), 1);
  ExpectShmForOthers(victim);
}

void GreetWithManySockets(Victim* victim) {
  std::unique_ptr<Peer> peer = victim->NewSession(ShmHello());
  SetupSocket socket(peer->peer_hello());
  PassSockets(victim, &socket, Greeting(peer->peer_hello().token), 2);
  ExpectShmForOthers(victim);
}

void GreetWithoutAToken(Victim* victim) {
  std::unique_ptr<Peer> peer = victim->NewSession(ShmHello());
  SetupSocket socket(peer->peer_hello());
  PassSockets(victim, &socket, Greeting(std::string(16, 'g')), 1);
  ExpectShmForOthers(victim);
}

// Passes a socket as a segment. The victim fetches segments on first use.
void PassASocketAsASegment(Victim* victim) {
  std::unique_ptr<Peer> peer = victim->NewSession(ShmHello());
  std::unique_ptr<ShmPath> path = ShmPath::Connect(peer.get());
  ASSERT_NE(path, nullptr);
  PassSockets(victim, path->socket(),
              SetupMessage(setup::kSegment, 1 << 20, 7, ""), 1);
  const auto begun = std::chrono::steady_clock::now();
  const uint32_t stream = peer->OpenStream(RequestMetadata("/victim/Echo"));
  const uint64_t key = uint64_t{7} << 32;
  peer->Send(FrameOf(type::kAnnounce, stream,
                     AnnouncementOf(1, 100, {Region(1, {Part(key, 0, 100)})})));
  ExpectShmForOthers(victim);
  EXPECT_TRUE(peer->Finish());
  EXPECT_LT(std::chrono::steady_clock::now() - begun,
            std::chrono::seconds(kLingerSeconds - 2))
      << "a connection of the victim's was held up";
}

// Passes every kind of descriptor in either message of the set-up.
void PassOddDescriptors(Victim* victim) {
  const OddDescriptors odd;
  SharedMemory bare(page::kRing + page::kRingBytes);
  std::vector<int> fds = odd.fds();
  fds.push_back(bare.fd());
  for (int fd : fds) {
    for (uint64_t size :
         {page::kRingBytes, uint64_t{0}, uint64_t{1}, UINT64_MAX}) {
      std::unique_ptr<Peer> peer = victim->NewSession(ShmHello());
      SetupSocket socket(peer->peer_hello());
      socket.Send(
          SetupMessage(setup::kHello, size, 0, peer->peer_hello().token), {fd});
      std::string answer;
      EXPECT_EQ(socket.Receive(&answer), -1);
      EXPECT_TRUE(peer->Finish());
    }
  }
}

// Sends set-up messages of any form.
void SendOddMessages(Victim* victim) {
  const std::string token(16, 't');
  const std::string good =
      SetupMessage(setup::kHello, page::kRingBytes, 0, token);
  std::vector<std::string> messages = {"", "P", good.substr(0, 19), good + "x",
                                       std::string(4096, 'x')};
  for (size_t at = 0; at < good.size(); ++at) {
    messages.push_back(good);
    messages.back()[at] ^= '\xff';
  }
  SharedMemory memory(page::kRing + page::kRingBytes);
  std::unique_ptr<Peer> peer = victim->NewSession(ShmHello());
  for (const std::string& message : messages) {
    SetupSocket socket(peer->peer_hello());
    socket.Send(message, {memory.fd()});
    SetupSocket bare(peer->peer_hello());
    bare.Send(message, {});
    SetupSocket mute(peer->peer_hello());
  }
  // Retries for some time. A peer that has left occupies a place for
  // connections until the victim notices (docs/security.md).
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (std::chrono::steady_clock::now() < until &&
         !Echo(NewChannel(victim->port(), RequireShm()).get(), 8).ok()) {
  }
  ExpectShmForOthers(victim);
}

const Attack kOnServers[] = {
    {"ASocketInTheGreetingHoldsNobodyUp", GreetWithASocket},
    {"ManySocketsInTheGreetingHoldNobodyUp", GreetWithManySockets},
    {"ASocketWithoutATokenHoldsNobodyUp", GreetWithoutAToken},
    {"ASocketForASegmentHoldsNobodyUp", PassASocketAsASegment},
    {"OddDescriptorsAreRefused", PassOddDescriptors},
    {"OddMessagesAreRefused", SendOddMessages},
};

TEST_P(AgainstServer, NobodyIsHarmed) { Run(); }

INSTANTIATE_TEST_SUITE_P(Shm, AgainstServer, ::testing::ValuesIn(kOnServers),
                         NameOfTest);

}  // namespace
}  // namespace penstock::adversary
