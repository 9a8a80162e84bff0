// Tests streams of TLS between hosts, where the path loses packets and TCP's
// bytes overtake those of the path.

#include <cstdint>
#include <memory>

#include "gtest/gtest.h"
#include "tests/transport/event_engine/stream/ends.h"
#include "tests/transport/event_engine/stream/random_steps.h"
#include "transport/event_engine/stream/packet.h"

namespace penstock {
namespace event_engine {
namespace {

struct Hosts : Pair {
  explicit Hosts(LinkOptions options = LinkOptions())
      : Pair(std::move(options)) {
    for (End& end : ends) end.FollowRecords();
  }
};

// Returns the offset of the first boundary between records at or after `least`.
uint64_t BoundaryFrom(uint64_t least) {
  const std::string& stream = TlsStream();
  TlsRecords records;
  uint64_t at = 0;
  while (at < least || at == 0) {
    at += records.TakeRecord(
        {reinterpret_cast<const uint8_t*>(stream.data()) + at,
         stream.size() - at});
  }
  return at;
}

TEST(BetweenHostsTest, DirectionLeavesTcpBetweenTwoRecords) {
  Hosts pair;
  const uint64_t boundary = BoundaryFrom(2);
  pair.ends[0].Send(boundary - 1);
  pair.NewLink();
  pair.Move(0);
  pair.Move(1);
  pair.PollAll();
  EXPECT_FALSE(pair.ends[0].stream.on_path());
  pair.ends[0].Send(1);
  EXPECT_TRUE(pair.ends[0].stream.on_path());
  EXPECT_EQ(pair.ends[0].tcp.size(), boundary);
  pair.ends[0].Send(1000);
  pair.Finish();
  EXPECT_TRUE(pair.IsQuiet());
  EXPECT_TRUE(pair.status().ok()) << pair.status();
}

// Drops the packet that announces the sender's move. The receiver must learn of
// the move from the mark on TCP.
TEST(BetweenHostsTest, MoveThatWasLostIsToldByTheMark) {
  for (uint64_t boundary : {BoundaryFrom(1), BoundaryFrom(5000)}) {
    for (size_t piece = 1; piece < 50; ++piece) {
      Hosts pair;
      pair.ends[0].Send(boundary);
      pair.NewLink();
      pair.Move(0);
      pair.Move(1);
      pair.ends[0].Poll();
      pair.ends[0].Send(1000);
      pair.link->Drop();
      pair.ends[0].Poll();
      EXPECT_EQ(pair.ends[0].tcp.size(), boundary + kMarkBytes + 1000);
      while (!pair.ends[0].tcp.empty()) pair.ends[1].ReadTcp(piece);
      ASSERT_EQ(pair.ends[1].got, boundary + 1000) << piece;
      ASSERT_TRUE(pair.status().ok()) << piece << ": " << pair.status();
    }
  }
}

// Delivers the mark on TCP before packets that the sender sent earlier over the
// path. The receiver must ignore those packets.
TEST(BetweenHostsTest, PacketsAfterTheMarkAreIgnored) {
  Hosts pair;
  pair.NewLink();
  pair.Move(0);
  pair.Move(1);
  pair.ends[0].Poll();
  pair.ends[0].Send(1000);
  pair.ends[0].stream.LosePath(absl::UnavailableError("a failed send"));
  pair.ends[0].Settle();
  pair.ends[1].ReadTcp(kMarkBytes + 500);
  EXPECT_EQ(pair.ends[1].stream.path(), nullptr) << "the peer has left it";
  pair.ends[1].Poll();
  pair.ends[1].ReadTcp(500);
  EXPECT_EQ(pair.ends[1].got, 1000u);
  EXPECT_TRUE(pair.status().ok()) << pair.status();
}

TEST(BetweenHostsTest, BytesThatLookLikeAMarkAreTheStreams) {
  Hosts pair;
  pair.NewLink();
  pair.Move(0);  // now expects marks, although the peer never moves
  pair.ends[1].Send(1 << 20);
  while (!pair.ends[1].tcp.empty()) pair.ends[0].ReadTcp(1000);
  EXPECT_EQ(pair.ends[0].got, uint64_t{1} << 20);
  EXPECT_TRUE(pair.status().ok()) << pair.status();
}

TEST(BetweenHostsTest, StockPeersBytesAreNeverAMark) {
  MovableStream stream;
  stream.FollowRecords();
  const std::string mark = EncodeMark(0);
  stream.OnTcp(BytesOf(mark));
  EXPECT_TRUE(stream.error().ok());
  EXPECT_EQ(TextOf(stream.Take()), mark);
}

TEST(BetweenHostsTest, RecordsAreIgnoredOnlyBeforeThePath) {
  MovableStream without_path;
  without_path.FollowRecords();
  without_path.IgnoreRecords();
  EXPECT_TRUE(without_path.IsPlain(100));

  Hosts pair;
  pair.NewLink();
  pair.Move(0);
  pair.ends[0].stream.IgnoreRecords();
  EXPECT_TRUE(pair.ends[0].stream.follows_records());
  EXPECT_FALSE(pair.ends[0].stream.IsPlain(100));
}

TEST(BetweenHostsTest, MarkBehindTheReceivedBytesIsAnError) {
  Hosts pair;
  pair.NewLink();
  pair.Move(0);
  pair.ends[0].stream.OnTcp(BytesOf(EncodeMark(1)));
  EXPECT_TRUE(absl::IsInvalidArgument(pair.ends[0].stream.error()));
}

TEST(BetweenHostsTest, AnyOrderOfMovesAndLossesKeepsTheBytes) {
  RunAtRandom([](const Below& below) {
    LinkOptions options;
    options.can_load = false;
    options.credits = 1 + static_cast<int>(below(8));
    return std::make_unique<Hosts>(options);
  });
}

}  // namespace
}  // namespace event_engine
}  // namespace penstock
