#include "transport/event_engine/stream/movable_stream.h"

#include <cstdint>
#include <memory>

#include "gtest/gtest.h"
#include "tests/transport/event_engine/stream/ends.h"
#include "tests/transport/event_engine/stream/random_steps.h"
#include "transport/event_engine/stream/packet.h"

namespace penstock {
namespace event_engine {
namespace {

TEST(MovableStreamTest, StockPeerSeesPlainBytes) {
  Pair pair;
  pair.ends[0].Send(100);
  EXPECT_EQ(pair.ends[0].tcp.size(), 100u);
  pair.ends[1].ReadTcp(100);
  EXPECT_EQ(pair.ends[1].got, 100u);
}

TEST(MovableStreamTest, BytesBeforeTheMoveComeFirst) {
  Pair pair;
  pair.ends[0].Send(100);
  pair.NewLink();
  pair.Move(0);
  pair.Move(1);
  pair.ends[0].Poll();
  pair.ends[0].Send(50);
  EXPECT_EQ(pair.ends[0].tcp.size(), 100u) << "the rest is on the path";
  pair.ends[1].Poll();
  EXPECT_EQ(pair.ends[1].got, 0u);
  pair.ends[1].ReadTcp(99);
  EXPECT_EQ(pair.ends[1].got, 99u);
  pair.ends[1].ReadTcp(1);
  EXPECT_EQ(pair.ends[1].got, 150u);
  EXPECT_TRUE(pair.status().ok()) << pair.status();
}

TEST(MovableStreamTest, LostPathIsResumedFromTheLastAcknowledgement) {
  Pair pair;
  pair.NewLink();
  pair.Move(0);
  pair.Move(1);
  pair.ends[0].Poll();
  pair.ends[1].Poll();
  pair.ends[0].Send(100);
  pair.ends[1].Poll();
  EXPECT_EQ(pair.ends[1].got, 100u);  // unacknowledged
  pair.ends[0].Send(100);             // lost
  pair.link->Drop();
  pair.ends[0].Poll();
  EXPECT_EQ(pair.ends[0].tcp.size(), kMarkBytes + 200);
  pair.ends[0].Send(1);
  pair.Finish();
  EXPECT_EQ(pair.ends[1].got, 201u);
  EXPECT_TRUE(pair.status().ok()) << pair.status();
}

TEST(MovableStreamTest, PathThatNobodyAnsweredIsLostWithoutAMark) {
  Pair pair;
  pair.NewLink();
  pair.Move(0);
  pair.ends[0].Send(10);
  pair.waiting[1].reset();
  pair.ends[0].Poll();
  EXPECT_EQ(pair.ends[0].stream.path(), nullptr);
  EXPECT_EQ(pair.ends[0].tcp.size(), 10u);
  pair.Finish();
  EXPECT_TRUE(pair.status().ok()) << pair.status();
}

// Loses the path when the peer may have moved. This side never learns the
// offset of the move, so it could not interpret the next bytes of TCP.
TEST(MovableStreamTest, PathThatIsLostInMidSwitchEndsTheConnection) {
  Pair pair;
  pair.NewLink();
  pair.Move(0);
  pair.ends[0].stream.LosePath(absl::AbortedError("shut down"));
  EXPECT_TRUE(absl::IsAborted(pair.ends[0].stream.error()));
}

// Expects that the stream drops no bytes itself. Dropping a program's bytes may
// call the program, which is forbidden under the lock.
TEST(MovableStreamTest, SentBytesAreDroppedByTheCaller) {
  Pair pair;
  pair.NewLink();
  pair.Move(0);
  pair.Move(1);
  pair.PollAll();
  memory::Bytes bytes = BytesOf("bytes");
  const std::weak_ptr<const void> owner = bytes.owner;
  pair.ends[0].stream.Write(memory::Payload(std::move(bytes)));
  pair.ends[1].stream.Poll();
  EXPECT_EQ(TextOf(pair.ends[1].stream.Take()), "bytes");
  pair.ends[1].stream.Nudge();  // acknowledges
  pair.ends[0].stream.Poll();
  EXPECT_FALSE(owner.expired());
  EXPECT_EQ(pair.ends[0].stream.TakeReleased().size(), 1u);
  EXPECT_TRUE(owner.expired());
}

TEST(MovableStreamTest, UnsentBytesOfALostPathAreDroppedByTheCaller) {
  Pair pair;
  pair.options.credits = 1 << 20;
  pair.NewLink();
  pair.Move(0);
  pair.Move(1);
  pair.PollAll();
  pair.ends[0].Send(kWindowBytes + 1000);
  ASSERT_FALSE(pair.ends[0].stream.idle()) << "there is no room";
  memory::Bytes bytes = BytesOf("bytes");
  const std::weak_ptr<const void> owner = bytes.owner;
  pair.ends[0].stream.Write(memory::Payload(std::move(bytes)));
  pair.ends[0].stream.TakeReleased();
  pair.ends[0].stream.LosePath(absl::UnavailableError("closed"));
  pair.ends[0].stream.LeavePath();
  EXPECT_FALSE(owner.expired());
  pair.ends[0].stream.TakeReleased();
  EXPECT_TRUE(owner.expired());
}

TEST(MovableStreamTest, KeptBytesAreLimited) {
  Pair pair;
  pair.options.credits = 1 << 20;
  pair.NewLink();
  pair.Move(0);
  pair.Move(1);
  pair.ends[0].Poll();
  pair.ends[0].Send(kWindowBytes + 1000);
  EXPECT_FALSE(pair.ends[0].stream.idle());
  pair.Finish();
  EXPECT_TRUE(pair.IsQuiet());
  EXPECT_TRUE(pair.ends[0].stream.idle());
  EXPECT_TRUE(pair.status().ok()) << pair.status();
}

// Makes the peer read nothing, so that the sender keeps all packets.
TEST(MovableStreamTest, KeptPacketsAreLimited) {
  Pair pair;
  pair.options.credits = 1 << 20;
  pair.NewLink();
  pair.Move(0);
  pair.Move(1);
  pair.ends[0].Poll();
  for (size_t i = 0; i < kMaxKeptPackets; ++i) pair.ends[0].Send(1);
  EXPECT_TRUE(pair.ends[0].stream.idle());
  pair.ends[0].Send(1);
  EXPECT_FALSE(pair.ends[0].stream.idle());
  pair.Finish();
  EXPECT_TRUE(pair.IsQuiet());
  EXPECT_TRUE(pair.ends[0].stream.idle());
  EXPECT_TRUE(pair.status().ok()) << pair.status();
}

TEST(MovableStreamTest, AcknowledgementFollowsAPacketThatWaitedForRoom) {
  constexpr int kCredits = 200;  // more than a window's packets
  Pair pair;
  pair.options.credits = kCredits;
  pair.NewLink();
  pair.Move(0);
  pair.Move(1);
  pair.PollAll();
  for (int i = 0; i <= kCredits; ++i) pair.ends[0].Send(1);
  EXPECT_FALSE(pair.ends[0].stream.idle()) << "there is no room";
  pair.ends[1].Send(kWindowBytes + 1000);
  for (int i = 0; i < kCredits; ++i) pair.ends[0].Poll();
  EXPECT_EQ(pair.ends[0].got, kWindowBytes);
  pair.Finish();
  EXPECT_TRUE(pair.IsQuiet());
  EXPECT_TRUE(pair.status().ok()) << pair.status();
}

TEST(MovableStreamTest, AnyOrderOfMovesAndLossesKeepsTheBytes) {
  RunAtRandom([](const Below& below) {
    LinkOptions options;
    options.can_load = below(2) == 1;
    options.eager_max_bytes = size_t{1} << below(13);
    options.credits = 1 + static_cast<int>(below(8));
    return std::make_unique<Pair>(options);
  });
}

}  // namespace
}  // namespace event_engine
}  // namespace penstock
