// Tests that other work continues while close() blocks for a stranger's
// descriptor.

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/transport/fabric/shm/shm_test_util.h"
#include "tests/transport/progress/lingering.h"
#include "transport/base/unique_fd.h"
#include "transport/fabric/shm/address.h"
#include "transport/fabric/shm/control.h"
#include "transport/fabric/shm/fabric.h"
#include "transport/fabric/shm/region_key.h"
#include "transport/fabric/shm/setup_message.h"
#include "transport/progress/aside.h"
#include "transport/progress/event_loop.h"

namespace penstock {
namespace fabric {
namespace shm {
namespace {

constexpr uint64_t kRing = 1 << 18;

std::string HelloWith(const std::string& token) {
  SetupMessage hello;
  hello.token = token;
  hello.size = kRing;
  return EncodeSetup(hello);
}

// Waits until the thread of the event loop has finished its work.
void ExpectLoopMovesOn() {
  auto moved = std::make_shared<std::promise<void>>();
  std::future<void> on = moved->get_future();
  progress::EventLoop::Get().value()->Post([moved] { moved->set_value(); });
  EXPECT_EQ(on.wait_for(absl::ToChronoSeconds(kTestDeadline)),
            std::future_status::ready)
      << "the event loop waits for a stranger";
}

// Blocks the event loop's thread, so that the thread closes nothing until the
// test has released the descriptor.
class HeldLoop {
 public:
  HeldLoop() {
    std::future<void> go_on = go_on_.get_future();
    auto shared = std::make_shared<std::future<void>>(std::move(go_on));
    progress::EventLoop::Get().value()->Post([shared] { shared->wait(); });
  }
  ~HeldLoop() { go_on_.set_value(); }

 private:
  std::promise<void> go_on_;
};

class Strangers : public ::testing::Test {
 protected:
  void SendAndLetGo(int socket, const std::string& bytes,
                    const std::vector<int>& fds) {
    HeldLoop held;
    SendWith(socket, bytes, fds);
    lingering_->LetGo();
  }
  // Sends `fds` together with `bytes`, and waits until the server has refused
  // them.
  void Stranger(const std::string& bytes, const std::vector<int>& fds) {
    base::UniqueFd socket = RawConnect(server_.Offer().value());
    SendAndLetGo(socket.get(), bytes, fds);
    EXPECT_TRUE(WaitUntil([&] { return IsHungUp(socket); }));
    ExpectLoopMovesOn();
  }
  // Leaves one connection whose close() blocks forever.
  void TakeAThread(const std::string& offer, Lingering* lingering) {
    base::UniqueFd socket = RawConnect(offer);
    {
      HeldLoop held;
      SendWith(socket.get(), "x", {lingering->fd()});
      lingering->LetGo();
    }
    EXPECT_TRUE(WaitUntil([&] { return IsHungUp(socket); }));
    ExpectLoopMovesOn();
  }
  void TearDown() override {
    lingering_.reset();
    EXPECT_TRUE(WaitUntil([] { return progress::TasksAside() == 0; }));
    EXPECT_TRUE(WaitUntil([this] { return Serves(); }));
  }
  // Returns true if the server still accepts a connection. More clients may
  // wait than the server accepts.
  bool Serves() {
    const std::string token = NewTestToken();
    Outcome listened;
    Outcome connected;
    auto listen = server_.Listen(token, listened.callback());
    auto connect =
        server_.Connect(server_.Offer().value(), token, connected.callback());
    return connected.Take().ok() && listened.Take().ok();
  }

  ShmFabric server_;
  std::unique_ptr<Lingering> lingering_ = std::make_unique<Lingering>();
};

TEST_F(Strangers, SocketInPlaceOfMemory) {
  Stranger(HelloWith(NewTestToken()), {lingering_->fd()});
}

TEST_F(Strangers, SocketInPlaceOfMemoryWithATokenThatIsWaitedFor) {
  const std::string token = NewTestToken();
  Outcome listened;
  auto listen = server_.Listen(token, listened.callback());
  Stranger(HelloWith(token), {lingering_->fd()});
}

TEST_F(Strangers, SocketsBesideMemory) {
  auto memory = Segment::Create("test", 4096);
  Stranger(HelloWith(NewTestToken()),
           {memory->fd(), lingering_->fd(), lingering_->fd()});
}

TEST_F(Strangers, MoreDescriptorsThanAnybodyTakes) {
  Stranger(HelloWith(NewTestToken()), std::vector<int>(50, lingering_->fd()));
}

TEST_F(Strangers, SocketWithGarbage) { Stranger("x", {lingering_->fd()}); }

TEST_F(Strangers, SocketThatNobodyReceives) {
  base::UniqueFd socket = RawConnect(server_.Offer().value());
  {
    HeldLoop held;
    auto memory = Segment::Create("test", 4096);
    // Sends two messages. The first makes the server refuse the connection, and
    // the second stays in the socket.
    SendWith(socket.get(), "x", {memory->fd()});
    SendWith(socket.get(), "y", {lingering_->fd()});
    lingering_->LetGo();
  }
  EXPECT_TRUE(WaitUntil([&] { return IsHungUp(socket); }));
  ExpectLoopMovesOn();
}

TEST_F(Strangers, ListenersAnswerOfAnotherKind) {
  const SocketAddress address{NewSocketName().value(), ""};
  base::UniqueFd listener = ListenAt(address).value();
  Outcome outcome;
  auto connect = server_.Connect(MakeOffer(address).value(), NewTestToken(),
                                 outcome.callback());
  base::UniqueFd socket;
  ASSERT_TRUE(WaitUntil([&] {
    socket.Reset(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    return socket.valid();
  }));
  SetupMessage welcome;
  welcome.kind = SetupMessage::Kind::kWelcome;
  welcome.size = kRing;
  SendAndLetGo(socket.get(), EncodeSetup(welcome), {lingering_->fd()});
  EXPECT_FALSE(outcome.Take().ok());
  ExpectLoopMovesOn();
}

// A connection that is set up. The test is one side.
class StrangersSegment : public Strangers {
 protected:
  void TearDown() override {
    peer_ = nullptr;
    Strangers::TearDown();
  }

  // Passes `fd` as a segment, and then lends a region of that segment.
  void Pass(int fd) {
    SetupMessage segment;
    segment.kind = SetupMessage::Kind::kSegment;
    segment.segment_id = 7;
    segment.size = 4096;
    SendAndLetGo(peer_->socket.get(), EncodeSetup(segment), {fd});
    const RemoteRegion region{{RegionKey(7, 1), 0, 4096}};
    auto loaded = std::async(std::launch::async, [this, region] {
      return peer_->end.endpoint->Load(region).ok();
    });
    ASSERT_EQ(loaded.wait_for(absl::ToChronoSeconds(kTestDeadline)),
              std::future_status::ready)
        << "who loads waits for a stranger";
    EXPECT_FALSE(loaded.get());
  }

  std::unique_ptr<RawPair> peer_ = MakeRawPair(&server_);
};

TEST_F(StrangersSegment, SocketInPlaceOfASegment) { Pass(lingering_->fd()); }

TEST_F(StrangersSegment, SocketThatNobodyReceivesWhenThePathEnds) {
  SendAndLetGo(peer_->socket.get(), "x", {lingering_->fd()});
  auto ended =
      std::async(std::launch::async, [this] { peer_->end.endpoint.reset(); });
  EXPECT_EQ(ended.wait_for(absl::ToChronoSeconds(kTestDeadline)),
            std::future_status::ready);
  peer_->socket.Reset();
  ExpectLoopMovesOn();
}

// Tests a connection whose close() blocks. The other closing threads must stay
// free.
TEST_F(Strangers, OneThatCannotBeClosedLeavesTheRest) {
  TakeAThread(server_.Offer().value(), lingering_.get());
  auto memory = Segment::Create("test", 4096);
  for (int i = 0; i < 10; ++i) Stranger("x", {memory->fd()});
  EXPECT_TRUE(WaitUntil([] { return progress::TasksAside() == 1; }));
}

TEST_F(Strangers, FloodOfThemIsBounded) {
  const size_t before = CountFds();
  const std::string offer = server_.Offer().value();
  std::vector<Lingering> more(progress::kMostClosingThreads - 1);
  TakeAThread(offer, lingering_.get());
  for (Lingering& each : more) TakeAThread(offer, &each);
  // Connects until the server stops accepting. The server refuses each
  // connection, but all closing threads are blocked, so refused connections
  // accumulate up to the limit. On a busy machine this takes many rounds: while
  // the server's thread does not run, only the backlog fills.
  size_t refused = 0;
  const auto flood = [&] {
    for (size_t i = 0; i < 4 * progress::kManyTasksAside; ++i) {
      base::UniqueFd socket =
          ConnectTo(AddressIn(offer, "").value()).value_or(base::UniqueFd());
      if (!socket.valid() || send(socket.get(), "x", 1, MSG_NOSIGNAL) < 0) {
        ++refused;  // nobody accepts any longer
      }
    }
    return progress::IsBusyAside();
  };
  EXPECT_TRUE(WaitUntil(flood));
  flood();
  EXPECT_GT(refused, 0u);
  ExpectLoopMovesOn();
  // Allows for descriptors that the loop accepts at once, and for half-open
  // connections.
  EXPECT_LT(CountFds(), before + progress::kManyTasksAside + 70);
}

}  // namespace
}  // namespace shm
}  // namespace fabric
}  // namespace penstock
