// Tests a hostile server that offers shared memory: attacks through the set-up
// of its clients.

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/adversary/attack.h"
#include "tests/adversary/odd_descriptors.h"
#include "tests/adversary/shm_peer.h"
#include "tests/adversary/shm_session.h"
#include "tests/adversary/wire.h"

namespace penstock::adversary {
namespace {

// The time after which a client has ended a session whose server does not agree
// on a path: 15 s, and a margin for a busy machine.
constexpr std::chrono::seconds kEndOfAgreement(25);
constexpr size_t kSocketNameBytes = 9 + 32;

// Attacks by `answer`, which sends an invalid welcome. The victim's call takes
// another path.
void Answer(Victim* victim, const std::function<void(SetupSocket*)>& answer) {
  ShmServer server(victim, Moment::kAsked);
  if (server.socket == nullptr) return;
  answer(server.socket.get());
  ExpectCallOverLifeline(victim, server.peer.get());
}

void OfferNoSocket(Victim* victim) {
  const std::string name = SetupListener().name();  // the listener is closed
  ExpectCallOverLifeline(victim, victim->NewSession(ShmHello(name)).get());
}

void OfferNonsense(Victim* victim) {
  SetupListener listener;
  const Offer good = ShmHello(listener.name()).offers[0];
  std::vector<std::string> offers = {
      "",
      "\n",
      "\n\n",
      std::string(1024, '\n'),
      std::string(1024, 'x'),
      std::string(1024, '\0'),
      good.data.substr(0, good.data.size() - 1),
      good.data + "\n",
      absl::StrCat(good.data.substr(0, good.data.rfind('\n')), "\n/tmp"),
      absl::StrCat(good.data.substr(0, good.data.rfind('\n')), "\n/proc/self"),
      absl::StrCat(good.data.substr(0, good.data.find('\n')), "\n",
                   std::string(kSocketNameBytes, '/'), "\n"),
  };
  for (const std::string& data : offers) {
    Hello hello = ShmHello(listener.name());
    hello.offers[0].data = data;
    ExpectCallOverLifeline(victim, victim->NewSession(hello).get());
  }
  Hello often = ShmHello(listener.name());
  often.offers.assign(8, {true, "shm", ""});
  ExpectCallOverLifeline(victim, victim->NewSession(often).get());
}

// Attacks by a listener that never answers. The client connects, and must end
// the attempt by its own timeout.
void ListenAndStayAway(Victim* victim) {
  SetupListener listener;
  std::unique_ptr<Peer> peer = victim->NewSession(ShmHello(listener.name()));
  ExpectCallOverLifeline(victim, peer.get());
}

// Attacks by a listener whose queue is full, so that no process can connect.
void ListenWithAFullQueue(Victim* victim) {
  SetupListener listener(/*backlog=*/0);
  std::vector<int> callers;
  const std::string& name = listener.name();
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const socklen_t size = offsetof(sockaddr_un, sun_path) + 1 + name.size();
  do {
    callers.push_back(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0));
  } while (connect(callers.back(), reinterpret_cast<sockaddr*>(&address),
                   size) == 0);
  ExpectCallOverLifeline(victim, victim->NewSession(ShmHello(name)).get());
  for (int caller : callers) close(caller);
}

// Sends a valid welcome to a client that has given up.
void AnswerTooLate(Victim* victim) {
  SharedMemory memory(page::kRing + page::kRingBytes);
  WritePageHead(memory.data());
  Answer(victim, [&](SetupSocket* socket) {
    std::string rest;
    EXPECT_EQ(socket->Receive(&rest), -1);  // the client has hung up
    socket->Send(Welcome(), {memory.fd()});
  });
}

void AnswerWithOddMessages(Victim* victim) {
  SharedMemory memory(page::kRing + page::kRingBytes);
  WritePageHead(memory.data());
  const std::string good = Welcome();
  std::vector<std::string> messages = {
      "P",
      good.substr(0, good.size() - 1),
      good + "x",
      std::string(4096, 'x'),
      SetupMessage(setup::kWelcome, page::kRingBytes, 0, std::string(16, 't')),
      SetupMessage(setup::kWelcome, page::kRingBytes, 2, "")};
  for (size_t at = 0; at < good.size(); ++at) {
    messages.push_back(good);
    messages.back()[at] ^= '\xff';
  }
  for (uint8_t kind : {setup::kHello, setup::kSegment, setup::kTakenBack}) {
    messages.push_back(SetupMessage(kind, page::kRingBytes, 0, ""));
  }
  for (const std::string& message : messages) {
    SCOPED_TRACE(absl::CHexEscape(message));
    Answer(victim,
           [&](SetupSocket* socket) { socket->Send(message, {memory.fd()}); });
  }
  for (const std::vector<int>& fds :
       {std::vector<int>(), std::vector<int>(2, memory.fd()),
        std::vector<int>(200, memory.fd())}) {
    Answer(victim, [&](SetupSocket* socket) { socket->Send(good, fds); });
  }
}

// Passes descriptors of every kind in place of a ring.
void AnswerWithOddDescriptors(Victim* victim) {
  const OddDescriptors odd;
  for (int fd : odd.fds()) {
    Answer(victim, [&](SetupSocket* socket) { socket->Send(Welcome(), {fd}); });
  }
}

void AnswerWithOddSizes(Victim* victim) {
  SharedMemory memory(page::kRing + page::kRingBytes);
  WritePageHead(memory.data());
  for (uint64_t size :
       {uint64_t{0}, uint64_t{1}, page::kRingBytes - 1, 2 * page::kRingBytes,
        page::kRingBytes / 2, uint64_t{1} << 40, UINT64_MAX}) {
    Answer(victim, [&](SetupSocket* socket) {
      socket->Send(SetupMessage(setup::kWelcome, size, 0, ""), {memory.fd()});
    });
  }
}

// Changes each byte of magic, version and ring size, and removes them.
void AnswerWithOddPages(Victim* victim) {
  for (size_t at = 0; at <= 12; ++at) {
    SharedMemory memory(page::kRing + page::kRingBytes);
    if (at < 12) {
      WritePageHead(memory.data());
      memory.data()[at] ^= 0xff;
    }
    Answer(victim, [&](SetupSocket* socket) {
      socket->Send(Welcome(), {memory.fd()});
    });
  }
}

// Passes sockets where memory is expected. The victim must close them without
// delaying others.
void AnswerWithSockets(Victim* victim) {
  for (int count : {1, 2}) {
    ShmServer server(victim, Moment::kAsked);
    if (server.socket == nullptr) return;
    PassSockets(victim, server.socket.get(), Welcome(), count);
    const auto begun = std::chrono::steady_clock::now();
    ExpectCallOverLifeline(victim, server.peer.get());
    victim->AwaitCalls();
    EXPECT_LT(std::chrono::steady_clock::now() - begun,
              std::chrono::seconds(kLingerSeconds - 2))
        << "a thread of the victim was held up";
  }
}

// Says that a path is ready, although none was set up.
void SayReadyWithoutAPath(Victim* victim) {
  SetupListener deaf;
  const std::string gone = SetupListener().name();
  for (const std::string& name : {deaf.name(), gone}) {
    for (int times : {1, 2}) {
      std::unique_ptr<Peer> peer = victim->NewSession(ShmHello(name));
      for (int i = 0; i < times; ++i) {
        peer->Send(FrameOf(type::kPathReady, 0, "shm", 1));
      }
      ExpectCallOverLifeline(victim, peer.get());
    }
  }
}

// Sends messages that belong to a later attempt or to a client. These end the
// session.
void SpeakOutOfTurn(Victim* victim) {
  const std::string token(16, 't');
  const Frame lies[] = {FrameOf(type::kPathReady, 0, "shm", 2),
                        FrameOf(type::kPathReady, 0, "shm", UINT32_MAX),
                        FrameOf(type::kPathLost, 0, "", 2),
                        FrameOf(type::kPathWanted, 0, "", 1),
                        FrameOf(type::kPathWanted, 0, "", 2),
                        FrameOf(type::kPathOffered, 0, "short", 1)};
  for (const Frame& lie : lies) {
    SetupListener listener;
    std::unique_ptr<Peer> peer = victim->NewSession(ShmHello(listener.name()));
    peer->Send(lie);
    EXPECT_TRUE(peer->AwaitEnd()) << "the session does not end";
    ExpectCallLost(victim);
  }
}

// Offers the path again, with any token, while the client is still trying the
// first offer.
void OfferThePathAgain(Victim* victim) {
  SetupListener listener;
  std::unique_ptr<Peer> peer = victim->NewSession(ShmHello(listener.name()));
  for (int i = 0; i < 1000; ++i) {
    peer->Queue(FrameOf(type::kPathOffered, 0, std::string(16, 't'), 1));
  }
  peer->Flush();
  ExpectCallOverLifeline(victim, peer.get());
}

// Expects that Penstock's own timeout ends the session, and not gRPC's timeout
// of a connection attempt.
void ExpectEnd(Victim* victim, Peer* peer) {
  const auto until = std::chrono::steady_clock::now() + kEndOfAgreement;
  while (!peer->AwaitEnd()) {
    ASSERT_LT(std::chrono::steady_clock::now(), until)
        << "the session does not end";
  }
  const Outcome outcome = ExpectCallLost(victim);
  EXPECT_TRUE(absl::StrContains(outcome.message, "agreed on no path within"))
      << outcome.message;
}

// Never confirms the loss of the path, for which the client waits.
void NeverAgreeOnTheLoss(Victim* victim) {
  const std::string gone = SetupListener().name();
  std::unique_ptr<Peer> peer = victim->NewSession(ShmHello(gone));
  ASSERT_TRUE(AwaitPathLost(peer.get()));
  ExpectEnd(victim, peer.get());
}

// Never says that the path is ready, for which the client waits.
void NeverSayReady(Victim* victim) {
  ShmServer server(victim, Moment::kWelcomed);
  ExpectEnd(victim, server.peer.get());
}

// Waits until the client tries the path again. This happens a second after a
// loss, while the client's call is in progress.
uint32_t AwaitRetry(Peer* peer) {
  EXPECT_TRUE(AwaitPathLost(peer));
  peer->Send(FrameOf(type::kPathLost, 0, "agreed", 1));
  const uint32_t stream = peer->OpenStream("");
  EXPECT_TRUE(peer->Await(type::kPathWanted).has_value());
  return stream;
}

void OfferNoSocketAgain(Victim* victim) {
  const std::string gone = SetupListener().name();
  std::unique_ptr<Peer> peer = victim->NewSession(ShmHello(gone));
  const uint32_t stream = AwaitRetry(peer.get());
  peer->Send(FrameOf(type::kPathOffered, 0, std::string(16, 't'), 2));
  ASSERT_TRUE(AwaitPathLost(peer.get()));
  peer->Send(FrameOf(type::kPathLost, 0, "agreed", 2));
  ExpectAnswered(victim, peer.get(), stream);
}

void NeverAnswerARetry(Victim* victim) {
  const std::string gone = SetupListener().name();
  std::unique_ptr<Peer> peer = victim->NewSession(ShmHello(gone));
  AwaitRetry(peer.get());
  ExpectEnd(victim, peer.get());
}

const Attack kOnClients[] = {
    {"ASocketThatIsNotThereCostsThePathOnly", OfferNoSocket},
    {"ANonsenseOfferCostsThePathOnly", OfferNonsense},
    {"AServerThatStaysAwayCostsThePathOnly", ListenAndStayAway},
    {"AFullQueueCostsThePathOnly", ListenWithAFullQueue},
    {"ALateAnswerCostsThePathOnly", AnswerTooLate},
    {"OddMessagesCostThePathOnly", AnswerWithOddMessages},
    {"OddDescriptorsCostThePathOnly", AnswerWithOddDescriptors},
    {"OddSizesCostThePathOnly", AnswerWithOddSizes},
    {"OddPagesCostThePathOnly", AnswerWithOddPages},
    {"SocketsForARingHoldNobodyUp", AnswerWithSockets},
    {"ReadinessWithoutAPathCostsThePathOnly", SayReadyWithoutAPath},
    {"APathThatIsOfferedAgainIsHarmless", OfferThePathAgain},
    {"WhatIsOutOfTurnEndsTheSession", SpeakOutOfTurn},
    {"ALossThatIsNeverAgreedOnEndsTheSession", NeverAgreeOnTheLoss},
    {"APathThatIsNeverReadyEndsTheSession", NeverSayReady},
    {"ARetryThatFailsCostsThePathOnly", OfferNoSocketAgain},
    {"ARetryThatIsNeverAnsweredEndsTheSession", NeverAnswerARetry},
};

TEST_P(AgainstClient, NobodyIsHarmed) { Run(); }

INSTANTIATE_TEST_SUITE_P(ShmServer, AgainstClient,
                         ::testing::ValuesIn(kOnClients), NameOfTest);

}  // namespace
}  // namespace penstock::adversary
