// Through the set-up of shared memory, and in it.

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/adversary/attack.h"
#include "tests/adversary/shm_peer.h"
#include "tests/adversary/wire.h"

namespace penstock::adversary {
namespace {

// How long a TCP socket's last close() blocks whoever does it.
constexpr int kLingerSeconds = 6;

// With bytes that nobody reads, so that its close() waits for them.
int LingeringSocket() {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  (void)!bind(listener, reinterpret_cast<sockaddr*>(&address), size);
  (void)!listen(listener, 1);
  getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  (void)!connect(fd, reinterpret_cast<sockaddr*>(&address), size);
  // Its other end is left in the listener's queue, which stays open.
  const std::string bytes(1 << 20, 'u');
  while (send(fd, bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) {
  }
  const linger wait = {1, kLingerSeconds};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &wait, sizeof wait);
  return fd;
}

Options RequireShm() {
  Options options;
  options.policy = Policy::kRequire;
  options.fabrics = {Fabric::kShm};
  return options;
}

// Whoever comes now is served over shm, and at once.
void ExpectShmForOthers(Victim* victim) {
  const auto begun = std::chrono::steady_clock::now();
  const grpc::Status status =
      Echo(NewChannel(victim->port(), RequireShm()).get(), 8);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_LT(std::chrono::steady_clock::now() - begun,
            std::chrono::seconds(kLingerSeconds - 3))
      << "a thread of the victim was held up";
}

// Such that the victim's close() is the last one: while it is suspended.
void Pass(Victim* victim, SetupSocket* socket, const std::string& message,
          int count) {
  std::vector<int> fds;
  for (int i = 0; i < count; ++i) fds.push_back(LingeringSocket());
  victim->process()->Suspend();
  EXPECT_TRUE(socket->Send(message, fds));
  for (int fd : fds) close(fd);
  victim->process()->Resume();
}

std::string Greeting(absl::string_view token) {
  return SetupMessage(setup::kHello, page::kRingBytes, 0, token);
}

// It is no memory, so the victim closes it.
void GreetWithASocket(Victim* victim) {
  std::unique_ptr<Peer> peer = victim->NewSession(ShmHello());
  SetupSocket socket(peer->peer_hello());
  Pass(victim, &socket, Greeting(peer->peer_hello().token), 1);
  ExpectShmForOthers(victim);
}

void GreetWithManySockets(Victim* victim) {
  std::unique_ptr<Peer> peer = victim->NewSession(ShmHello());
  SetupSocket socket(peer->peer_hello());
  Pass(victim, &socket, Greeting(peer->peer_hello().token), 2);
  ExpectShmForOthers(victim);
}

void GreetWithoutAToken(Victim* victim) {
  std::unique_ptr<Peer> peer = victim->NewSession(ShmHello());
  SetupSocket socket(peer->peer_hello());
  Pass(victim, &socket, Greeting(std::string(16, 'g')), 1);
  ExpectShmForOthers(victim);
}

// In the place of a segment, which is fetched when it is first named.
void PassASocketAsASegment(Victim* victim) {
  std::unique_ptr<Peer> peer = victim->NewSession(ShmHello());
  std::unique_ptr<ShmPath> path = ShmPath::Connect(peer.get());
  ASSERT_NE(path, nullptr);
  Pass(victim, path->socket(), SetupMessage(setup::kSegment, 1 << 20, 7, ""),
       1);
  const auto begun = std::chrono::steady_clock::now();
  const uint32_t stream = peer->OpenStream(RequestMetadata("/victim/Echo"));
  const uint64_t key = uint64_t{7} << 32;
  peer->Send(
      FrameOf(type::kAnnounce, stream,
              absl::StrCat(U64(1), U64(100), U8(1), U32(1), U64(key), U64(0))));
  ExpectShmForOthers(victim);
  EXPECT_TRUE(peer->Finish());
  EXPECT_LT(std::chrono::steady_clock::now() - begun,
            std::chrono::seconds(kLingerSeconds - 2))
      << "a connection of the victim's was held up";
}

// Every kind of descriptor that a process has, as either message.
void PassOddDescriptors(Victim* victim) {
  int ends[2];
  (void)!pipe(ends);
  SharedMemory unsealed(page::kRing + page::kRingBytes, /*sealed=*/false);
  SharedMemory small(4096);
  SharedMemory bare(page::kRing + page::kRingBytes);
  const std::vector<int> fds = {ends[0],
                                ends[1],
                                open("/dev/null", O_RDWR),
                                open("/dev/zero", O_RDWR),
                                open("/", O_RDONLY | O_DIRECTORY),
                                open("/proc/self/mem", O_RDONLY),
                                epoll_create1(0),
                                eventfd(0, 0),
                                socket(AF_UNIX, SOCK_STREAM, 0),
                                unsealed.fd(),
                                small.fd(),
                                bare.fd()};
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
  for (size_t i = 0; i < 9; ++i) close(fds[i]);
}

// Set-up messages of any form.
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
  // Who has gone has a place until the victim has noticed (docs/security.md).
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (std::chrono::steady_clock::now() < until &&
         !Echo(NewChannel(victim->port(), RequireShm()).get(), 8).ok()) {
  }
  ExpectShmForOthers(victim);
}

// The victim looks at its path when a doorbell rings.
bool AwaitPathLost(Peer* peer) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (std::chrono::steady_clock::now() < until) {
    if (!peer->SendUnit(unit::kDoorbell, 0, "")) return false;
    const absl::optional<Peer::Received> received =
        peer->NextIfAny(std::chrono::milliseconds(20));
    if (received.has_value() && received->frame.type == type::kPathLost) {
      return true;
    }
  }
  return false;
}

// Segments that are lent without end, twice, of sizes that they do not have,
// and taken back without having been lent.
void LendOddSegments(Victim* victim) {
  SharedMemory memory(1 << 20);
  for (uint64_t size :
       {uint64_t{1} << 20, uint64_t{0}, uint64_t{1} << 40, UINT64_MAX}) {
    std::unique_ptr<Peer> peer = victim->NewSession(ShmHello());
    std::unique_ptr<ShmPath> path = ShmPath::Connect(peer.get());
    ASSERT_NE(path, nullptr);
    for (uint32_t id = 0; id < 300; ++id) {
      path->socket()->Send(SetupMessage(setup::kSegment, size, id / 2, ""),
                           {memory.fd()});
      path->socket()->Send(SetupMessage(setup::kTakenBack, 0, id * 7, ""), {});
    }
    path->socket()->Send(SetupMessage(setup::kTakenBack, 0, 1, ""),
                         {memory.fd()});
    peer->SendUnit(unit::kDoorbell, 0, "");
    EXPECT_TRUE(peer->Finish());
  }
}

// A call over the lifeline of a session whose path is lost.
void ExpectCallOverLifeline(Peer* peer) {
  ASSERT_TRUE(AwaitPathLost(peer)) << "the session did not outlive its path";
  peer->Send(FrameOf(type::kPathLost, 0, "agreed", 1));
  const uint32_t stream = peer->OpenStream(RequestMetadata("/victim/Reply"));
  peer->Queue(FrameOf(type::kMessage, stream, "1 8"));
  peer->Queue(FrameOf(type::kHalfClose, stream));
  peer->Flush();
  EXPECT_TRUE(peer->Await(type::kTrailers).has_value())
      << "the session did not outlive its path";
}

// What `spoil` does to the page breaks the path, and nothing else.
void Spoil(Victim* victim, const std::function<void(ShmPath*)>& spoil) {
  std::unique_ptr<Peer> peer = victim->NewSession(ShmHello());
  std::unique_ptr<ShmPath> path = ShmPath::Connect(peer.get());
  ASSERT_NE(path, nullptr);
  spoil(path.get());
  ExpectCallOverLifeline(peer.get());
}

void WriteNonsenseHeads(Victim* victim) {
  for (uint64_t head : {uint64_t{1}, uint64_t{7}, page::kRingBytes + 8,
                        uint64_t{1} << 63, UINT64_MAX, UINT64_MAX - 7}) {
    Spoil(victim, [head](ShmPath* path) { path->Store(page::kHead, head); });
  }
}

void WriteNonsenseLengths(Victim* victim) {
  for (uint32_t length : {65537u, 8189u, UINT32_MAX - 1, UINT32_MAX}) {
    Spoil(victim, [length](ShmPath* path) {
      *reinterpret_cast<uint32_t*>(path->own()->data() + page::kRing) = length;
      path->Store(page::kHead, 64);
    });
  }
}

// Messages of a good length and of random bytes: no frames.
void WriteNonsenseMessages(Victim* victim) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Spoil(victim, [seed](ShmPath* path) {
      std::mt19937 random(seed);
      std::string message(1 + random() % 4000, '\0');
      for (char& byte : message) byte = static_cast<char>(random());
      path->Send(message);
    });
  }
}

// Whatever lies there is said to be a message, over and over.
void OverwriteTheRing(Victim* victim) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Spoil(victim, [seed](ShmPath* path) {
      std::mt19937 random(seed);
      for (uint64_t at = 0; at < page::kRingBytes; ++at) {
        path->own()->data()[page::kRing + at] = static_cast<uint8_t>(random());
      }
      path->Store(page::kHead, random() % page::kRingBytes / 8 * 8 + 8);
    });
  }
}

// Tail and releases are about what the victim sent.
void ClaimToHaveReadMore(Victim* victim) {
  for (uint64_t field : {page::kTail, page::kReleaseHead}) {
    for (uint64_t value : {uint64_t{1} << 20, uint64_t{1} << 63}) {
      std::unique_ptr<Peer> peer = victim->NewSession(ShmHello());
      std::unique_ptr<ShmPath> path = ShmPath::Connect(peer.get());
      ASSERT_NE(path, nullptr);
      path->Store(field, value);
      // Through the ring more than it holds, and in the arena something.
      for (const char* replies : {"40 1000", "10 100000"}) {
        const uint32_t stream =
            peer->OpenStream(RequestMetadata("/victim/Reply"));
        peer->Send(FrameOf(type::kMessage, stream, replies));
      }
      ExpectCallOverLifeline(peer.get());
    }
  }
}

// The control page at random, while the victim works with it.
void ScribbleOnThePage(Victim* victim) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937 random(seed);
    std::unique_ptr<Peer> peer = victim->NewSession(ShmHello());
    std::unique_ptr<ShmPath> path = ShmPath::Connect(peer.get());
    ASSERT_NE(path, nullptr);
    for (int i = 0; i < 200; ++i) {
      path->Store(random() % 2048 / 8 * 8, random() % 4 == 0 ? random() : 0);
      peer->SendUnit(unit::kDoorbell, 0, "");
    }
    EXPECT_TRUE(peer->Finish());
  }
}

// A ring that nobody empties: the victim's answers wait.
void LeaveTheRingUnread(Victim* victim) {
  std::unique_ptr<Peer> peer = victim->NewSession(ShmHello());
  std::unique_ptr<ShmPath> path = ShmPath::Connect(peer.get());
  ASSERT_NE(path, nullptr);
  for (uint64_t id = 1; id < 1200000; ++id) {
    if (!peer->Queue(FrameOf(type::kAnnounce, 77, Announcement(id, 1, id)))) {
      return;
    }
  }
  peer->Flush();
}

const Attack kOnServers[] = {
    {"ASocketInTheGreetingHoldsNobodyUp", GreetWithASocket},
    {"ManySocketsInTheGreetingHoldNobodyUp", GreetWithManySockets},
    {"ASocketWithoutATokenHoldsNobodyUp", GreetWithoutAToken},
    {"ASocketForASegmentHoldsNobodyUp", PassASocketAsASegment},
    {"OddDescriptorsAreRefused", PassOddDescriptors},
    {"OddMessagesAreRefused", SendOddMessages},
    {"OddSegmentsAreHarmless", LendOddSegments},
    {"ANonsenseHeadBreaksThePathOnly", WriteNonsenseHeads},
    {"ANonsenseLengthBreaksThePathOnly", WriteNonsenseLengths},
    {"ANonsenseMessageBreaksThePathOnly", WriteNonsenseMessages},
    {"AnOverwrittenRingBreaksThePathOnly", OverwriteTheRing},
    {"ANonsenseTailBreaksThePathOnly", ClaimToHaveReadMore},
    {"AScribbledPageIsHarmless", ScribbleOnThePage},
    {"ARingThatIsNeverReadIsBounded", LeaveTheRingUnread},
};

TEST_P(AgainstServer, NobodyIsHarmed) { Run(); }

INSTANTIATE_TEST_SUITE_P(Shm, AgainstServer, ::testing::ValuesIn(kOnServers),
                         NameOfTest);

}  // namespace
}  // namespace penstock::adversary
