// Tests connections that are set up, and the errors of those that are not.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/shm/shm_test_util.h"
#include "transport/fabric/shm/address.h"
#include "transport/fabric/shm/control.h"
#include "transport/fabric/shm/fabric.h"
#include "transport/fabric/shm/setup_message.h"
#include "transport/progress/event_loop.h"

namespace penstock {
namespace fabric {
namespace shm {
namespace {

class ShmSetup : public ::testing::Test {
 protected:
  static Options Short() {
    Options options;
    options.setup_timeout = absl::Milliseconds(50);
    return options;
  }
  // Connects, and expects an error.
  absl::Status Refusal(const std::string& offer, const std::string& token) {
    Outcome outcome;
    auto pending = client_.Connect(offer, token, outcome.callback());
    return outcome.Take().status();
  }
  void ExpectStillWorks() { EXPECT_NE(MakePair(&server_, &client_), nullptr); }

  ShmFabric server_;
  ShmFabric client_;
};

SetupMessage HelloWith(const std::string& token, uint64_t ring_bytes) {
  SetupMessage hello;
  hello.token = token;
  hello.size = ring_bytes;
  return hello;
}

TEST_F(ShmSetup, OneFabricConnectsToItselfManyTimes) {
  std::vector<std::unique_ptr<Pair>> pairs;
  for (int i = 0; i < 20; ++i) pairs.push_back(MakePair(&server_, &server_));
  for (auto& pair : pairs) ASSERT_NE(pair, nullptr);
}

TEST_F(ShmSetup, OfferStaysTheSame) {
  EXPECT_EQ(server_.Offer().value(), server_.Offer().value());
}

TEST_F(ShmSetup, RingsMayDiffer) {
  Options options;
  options.ring_bytes = 1024 * 1024;
  ShmFabric large(options);
  auto pair = MakePair(&server_, &large);
  ASSERT_NE(pair, nullptr);
  EXPECT_EQ(pair->listening.endpoint->Describe(), "ring 256 KiB");
  EXPECT_EQ(pair->connecting.endpoint->Describe(), "ring 1024 KiB");
  ASSERT_TRUE(Send(pair->connecting.endpoint.get(), "hello"));
  EXPECT_TRUE(pair->listening.endpoint->Poll());
  EXPECT_EQ(pair->listening.events.packets.size(), 1u);
}

TEST_F(ShmSetup, OtherHostIsRefused) {
  const absl::Status status = Refusal("another-boot-id\npenstock-00", "token");
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_TRUE(absl::StrContains(status.message(), "another host")) << status;
  EXPECT_TRUE(absl::IsUnavailable(Refusal("\npenstock-00", "token")));
}

TEST_F(ShmSetup, GarbageOffersAreRefused) {
  const std::string good = server_.Offer().value();
  for (const std::string& offer :
       {std::string(), std::string("x"), good.substr(0, good.size() - 1),
        good + "0", good + "\n", good.substr(0, good.find('\n') + 1),
        good.substr(0, good.rfind('\n')),
        std::string(good).replace(good.find("penstock-") + 9, 1, "/")}) {
    EXPECT_FALSE(Refusal(offer, "token").ok()) << offer;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(Refusal(good, "")));
  EXPECT_TRUE(absl::IsInvalidArgument(Refusal(good, std::string(65, 't'))));
}

TEST_F(ShmSetup, MissingSocketIsExplained) {
  std::string offer;
  {
    ShmFabric gone;
    offer = gone.Offer().value();
  }
  absl::Status status;
  EXPECT_TRUE(WaitUntil([&] {
    status = Refusal(offer, NewTestToken());
    return absl::StrContains(status.message(), "no such socket here");
  })) << status;
  EXPECT_TRUE(absl::IsUnavailable(status));
}

TEST_F(ShmSetup, UnknownTokenIsRefused) {
  const std::string offer = server_.Offer().value();
  Outcome waiting;
  auto listen = server_.Listen(NewTestToken(), waiting.callback());
  EXPECT_TRUE(absl::IsUnavailable(Refusal(offer, NewTestToken())));
  EXPECT_FALSE(waiting.finished());
  ExpectStillWorks();
}

TEST_F(ShmSetup, TokenServesOnce) {
  const std::string offer = server_.Offer().value();
  const std::string token = NewTestToken();
  Outcome listened;
  Outcome connected;
  auto listen = server_.Listen(token, listened.callback());
  auto connect = client_.Connect(offer, token, connected.callback());
  EXPECT_TRUE(listened.Take().ok());
  EXPECT_TRUE(connected.Take().ok());
  EXPECT_TRUE(absl::IsUnavailable(Refusal(offer, token)));
}

TEST_F(ShmSetup, TokenInUseIsRefused) {
  const std::string token = NewTestToken();
  Outcome first;
  Outcome second;
  auto one = server_.Listen(token, first.callback());
  auto two = server_.Listen(token, second.callback());
  EXPECT_TRUE(absl::IsAlreadyExists(second.Take().status()));
  EXPECT_FALSE(first.finished());
}

TEST_F(ShmSetup, CancelledListenIsForgotten) {
  const std::string offer = server_.Offer().value();
  const std::string token = NewTestToken();
  Outcome outcome;
  server_.Listen(token, outcome.callback()).reset();
  EXPECT_TRUE(absl::IsUnavailable(Refusal(offer, token)));
  EXPECT_FALSE(outcome.finished());
}

// Cancels on the thread that reports, so that no report can be in progress.
TEST_F(ShmSetup, CancelledConnectIsNotReported) {
  const SocketAddress silent{NewSocketName().value(), ""};
  base::UniqueFd socket = ListenAt(silent).value();
  const SocketAddress missing{NewSocketName().value(), ""};
  const std::string offers[] = {server_.Offer().value(),
                                MakeOffer(silent).value(),
                                MakeOffer(missing).value(), "malformed"};
  ShmFabric fabric(Short());
  std::vector<std::unique_ptr<PendingConnect>> listening;
  auto reported = std::make_shared<std::atomic<int>>(0);
  Outcome last;
  std::unique_ptr<PendingConnect> pending;
  progress::EventLoop::Get().value()->Post([&] {
    for (const std::string& offer : offers) {
      const std::string token = NewTestToken();
      listening.push_back(server_.Listen(token, Outcome().callback()));
      fabric.Connect(offer, token, [reported](auto) { ++*reported; }).reset();
    }
    pending = fabric.Connect(offers[1], NewTestToken(), last.callback());
  });
  // Waits for the last attempt. This attempt began after the others and has the
  // same time limit, so the others have ended, too.
  EXPECT_TRUE(absl::IsDeadlineExceeded(last.Take().status()));
  EXPECT_EQ(*reported, 0);
  ExpectStillWorks();
}

TEST_F(ShmSetup, ListenEndsInTime) {
  ShmFabric fabric(Short());
  Outcome outcome;
  auto listen = fabric.Listen(NewTestToken(), outcome.callback());
  EXPECT_TRUE(absl::IsDeadlineExceeded(outcome.Take().status()));
}

TEST_F(ShmSetup, SilentListenerEndsInTime) {
  // Makes a socket that accepts and sends nothing.
  const SocketAddress address{NewSocketName().value(), ""};
  base::UniqueFd socket = ListenAt(address).value();
  ShmFabric fabric(Short());
  Outcome outcome;
  auto connect = fabric.Connect(MakeOffer(address).value(), NewTestToken(),
                                outcome.callback());
  EXPECT_TRUE(absl::IsDeadlineExceeded(outcome.Take().status()));
  // A listener that is late sees from the control page that nobody writes
  // there.
  const base::UniqueFd late(accept(socket.get(), nullptr, nullptr));
  absl::StatusOr<ReceivedSetup> hello = ReceiveSetup(late.get());
  ASSERT_TRUE(hello.ok()) << hello.status();
  absl::StatusOr<PeerSegment> page =
      MapControl(std::move(hello->fd), hello->message.size);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_EQ(PageOf(*page)->closed, 1u);
}

TEST_F(ShmSetup, GarbageOnTheSocketHarmsNobody) {
  const std::string offer = server_.Offer().value();
  for (const std::string& bytes :
       {std::string("x"), std::string(1000, '\0'),
        EncodeSetup(HelloWith("unknown", 1 << 18))}) {
    base::UniqueFd socket = RawConnect(offer);
    ASSERT_GT(send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), 0);
    EXPECT_TRUE(WaitUntil([&] { return IsHungUp(socket); }));
  }
  ExpectStillWorks();
}

TEST_F(ShmSetup, UnsealedMemoryIsRefused) {
  const std::string token = NewTestToken();
  Outcome listened;
  const std::string offer = server_.Offer().value();
  auto listen = server_.Listen(token, listened.callback());
  constexpr uint64_t kRing = 1 << 18;
  base::UniqueFd memory(memfd_create("hostile", MFD_CLOEXEC));
  ASSERT_EQ(posix_fallocate(memory.get(), 0, kRingOffset + kRing), 0);
  base::UniqueFd socket = RawConnect(offer);
  ASSERT_TRUE(
      SendSetup(socket.get(), HelloWith(token, kRing), memory.get()).ok());
  const absl::Status status = listened.Take().status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_TRUE(WaitUntil([&] { return IsHungUp(socket); }));
  ExpectStillWorks();
}

TEST_F(ShmSetup, SealedMemoryOfAnotherLayoutIsRefused) {
  const std::string token = NewTestToken();
  Outcome listened;
  const std::string offer = server_.Offer().value();
  auto listen = server_.Listen(token, listened.callback());
  constexpr uint64_t kRing = 1 << 18;
  auto zeros = Segment::Create("hostile", kRingOffset + kRing);
  base::UniqueFd socket = RawConnect(offer);
  ASSERT_TRUE(
      SendSetup(socket.get(), HelloWith(token, kRing), zeros->fd()).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(listened.Take().status()));
}

TEST_F(ShmSetup, FloodOfSilentConnectionsIsBoundedAndKeepsNobodyOut) {
  Options options;
  options.max_half_open = 8;
  options.setup_timeout = 3 * kTestDeadline;
  ShmFabric fabric(options);
  const std::string offer = fabric.Offer().value();
  std::vector<base::UniqueFd> sockets;
  for (int i = 0; i < 20; ++i) sockets.push_back(RawConnect(offer));
  // Returns true if the first `count` connections are closed, and no others.
  const auto are_closed = [&sockets](size_t count) {
    for (size_t i = 0; i < sockets.size(); ++i) {
      if (IsHungUp(sockets[i]) != (i < count)) return false;
    }
    return true;
  };
  EXPECT_TRUE(WaitUntil([&] { return are_closed(12); }));
  EXPECT_NE(MakePair(&fabric, &client_), nullptr);
  EXPECT_TRUE(WaitUntil([&] { return are_closed(13); }));
}

TEST_F(ShmSetup, ASilentConnectionEndsAtItsTimeLimit) {
  ShmFabric fabric(Short());
  const base::UniqueFd socket = RawConnect(fabric.Offer().value());
  EXPECT_TRUE(WaitUntil([&] { return IsHungUp(socket); }));
}

TEST_F(ShmSetup, LeavesNoDescriptorBehind) {
  { ExpectStillWorks(); }  // creates the descriptors that the process keeps
  const std::string offer = server_.Offer().value();
  const size_t before = CountFds();
  for (int i = 0; i < 10; ++i) {
    ExpectStillWorks();
    (void)Refusal(offer, NewTestToken());
    base::UniqueFd socket = RawConnect(offer);
  }
  // Accepts a lower count: descriptors of an earlier test may have been open at
  // the beginning.
  EXPECT_TRUE(WaitUntil([before] { return CountFds() <= before; }))
      << CountFds() << " instead of " << before;
}

}  // namespace
}  // namespace shm
}  // namespace fabric
}  // namespace penstock
