#include "tests/adversary/shm_session.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <vector>

#include "grpcpp/support/status.h"
#include "gtest/gtest.h"
#include "tests/adversary/wire.h"

namespace penstock::adversary {
namespace {

// Returns a socket with unread bytes, so that its close() waits for them.
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
  // Leaves the other end, and its unread bytes, in the queue of the listener,
  // which stays open. close() therefore waits.
  const std::string bytes(1 << 20, 'u');
  while (send(fd, bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) {
  }
  const linger wait = {1, kLingerSeconds};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &wait, sizeof wait);
  return fd;
}

bool IsLoss(const Outcome& outcome) {
  return outcome.code == grpc::StatusCode::UNAVAILABLE ||
         outcome.code == grpc::StatusCode::DEADLINE_EXCEEDED;
}

// Makes the peer's own call, as a client.
void Call(Peer* peer) {
  const uint32_t stream = peer->OpenStream(RequestMetadata("/victim/Reply"));
  peer->Queue(FrameOf(type::kMessage, stream, "1 8"));
  peer->Queue(FrameOf(type::kHalfClose, stream));
  peer->Flush();
  EXPECT_TRUE(peer->Await(type::kTrailers).has_value())
      << "a call is not served over the lifeline";
}

// Answers the victim's call as its server does.
void Answer(Peer* peer, uint32_t stream) {
  peer->Queue(FrameOf(type::kHeaders, stream, ResponseMetadata()));
  peer->Queue(FrameOf(type::kTrailers, stream, Known(key::kGrpcStatus, "0")));
  peer->Flush();
}

// Serves the next call.
void Serve(Peer* peer) {
  const uint32_t stream = peer->OpenStream("");
  ASSERT_NE(stream, 0u) << "no call comes over the lifeline";
  Answer(peer, stream);
}

void ExpectServed(Victim* victim, bool may_lose) {
  absl::optional<Outcome> outcome = victim->AwaitOutcome();
  while (may_lose && outcome.has_value() && IsLoss(*outcome)) {
    outcome = victim->AwaitOutcome();
  }
  ASSERT_TRUE(outcome.has_value()) << "the call does not end";
  EXPECT_EQ(outcome->code, grpc::StatusCode::OK) << outcome->message;
}

}  // namespace

void PassSockets(Victim* victim, SetupSocket* socket,
                 const std::string& message, int count) {
  std::vector<int> fds;
  for (int i = 0; i < count; ++i) fds.push_back(LingeringSocket());
  victim->process()->Suspend();
  EXPECT_TRUE(socket->Send(message, fds));
  for (int fd : fds) close(fd);
  victim->process()->Resume();
}

ShmSession ReachShm(Victim* victim) {
  ShmSession session;
  if (victim->is_server()) {
    session.peer = victim->NewSession(ShmHello());
    session.path = ShmPath::Connect(session.peer.get());
  } else {
    session.listener = std::make_unique<SetupListener>();
    session.peer = victim->NewSession(ShmHello(session.listener->name()));
    session.path = ShmPath::Accept(session.peer.get(), session.listener.get());
  }
  EXPECT_NE(session.path, nullptr) << "no shm path";
  return session;
}

std::string Welcome() {
  return SetupMessage(setup::kWelcome, page::kRingBytes, 0, "");
}

ShmServer::ShmServer(Victim* victim, Moment moment)
    : peer(victim->NewSession(ShmHello(listener->name()))) {
  if (moment == Moment::kGreeted) return;
  socket = listener->Accept();
  EXPECT_NE(socket, nullptr) << "no shm client comes";
  if (moment == Moment::kConnected || socket == nullptr) return;
  std::string hello;
  const int fd = socket->Receive(&hello);
  EXPECT_GE(fd, 0) << "the client sends no memory";
  if (fd < 0) return;
  victim_memory = std::make_unique<VictimMemory>(fd);
  if (moment == Moment::kAsked) return;
  WritePageHead(memory.data());
  memory.data()[page::kArmed] = 1;
  socket->Send(Welcome(), {memory.fd()});
  EXPECT_TRUE(peer->Await(type::kPathReady).has_value());
  if (moment == Moment::kWelcomed) return;
  peer->Send(FrameOf(type::kPathReady, 0, "shm", 1));
  if (moment == Moment::kReady) return;
  absl::optional<Peer::Received> received;
  do {
    received = peer->Next();
  } while (received.has_value() && received->unit != unit::kDoorbell);
  EXPECT_TRUE(received.has_value()) << "no call comes over the path";
}

bool AwaitPathLost(Peer* peer) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (std::chrono::steady_clock::now() < until) {
    // Rings the doorbell, so that the victim polls its path.
    if (!peer->SendUnit(unit::kDoorbell, 0, "")) return false;
    const absl::optional<Peer::Received> received =
        peer->NextIfAny(std::chrono::milliseconds(20));
    if (received.has_value() && received->frame.type == type::kPathLost) {
      return true;
    }
  }
  return false;
}

void ExpectCallOverLifeline(Victim* victim, Peer* peer) {
  ASSERT_TRUE(AwaitPathLost(peer)) << "the session did not outlive its path";
  peer->Send(FrameOf(type::kPathLost, 0, "agreed", 1));
  ExpectCall(victim, peer);
}

void ExpectCall(Victim* victim, Peer* peer, bool may_lose) {
  if (victim->is_server()) return Call(peer);
  for (int i = 0; i < victim->calls(); ++i) Serve(peer);
  for (int i = 0; i < victim->calls(); ++i) ExpectServed(victim, may_lose);
}

void ExpectAnswered(Victim* victim, Peer* peer, uint32_t stream) {
  Answer(peer, stream);
  ExpectServed(victim, /*may_lose=*/false);
}

Outcome ExpectCallLost(Victim* victim) {
  const absl::optional<Outcome> outcome = victim->AwaitOutcome();
  EXPECT_TRUE(outcome.has_value()) << "the call does not end";
  if (!outcome.has_value()) return Outcome();
  EXPECT_TRUE(IsLoss(*outcome)) << outcome->code << " " << outcome->message;
  return *outcome;
}

}  // namespace penstock::adversary
