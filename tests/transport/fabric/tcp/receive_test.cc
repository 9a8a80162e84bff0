// Tests Receive() on a pair of sockets.

#include "transport/fabric/tcp/receive.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/tcp/tcp_test_util.h"
#include "transport/base/unique_fd.h"
#include "transport/fabric/tcp/endpoint.h"

namespace penstock {
namespace fabric {
namespace tcp {
namespace {

constexpr uint64_t kPushed = uint64_t{1} << 63;
constexpr size_t kLarge = 200 * 1024;

class TcpReceive : public TcpEndpointTest {
 protected:
  TcpReceive() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
                         ends),
              0);
    here_ = base::UniqueFd(ends[0]);
    peer_ = base::UniqueFd(ends[1]);
    // The size of the socket buffer, in bytes, which holds the largest input of
    // these tests.
    const int room = 4 * 1024 * 1024;
    EXPECT_EQ(
        setsockopt(peer_.get(), SOL_SOCKET, SO_SNDBUF, &room, sizeof room), 0);
  }

  // Returns how many bytes the socket took.
  size_t Say(absl::string_view bytes) {
    const ssize_t sent = write(peer_.get(), bytes.data(), bytes.size());
    EXPECT_GE(sent, 0) << errno;
    return static_cast<size_t>(sent);
  }
  absl::StatusOr<size_t> Receive() {
    return tcp::Receive(here_.get(), endpoint_.get());
  }
  void ReceiveAll() {
    for (;;) {
      const absl::StatusOr<size_t> received = Receive();
      ASSERT_TRUE(received.ok()) << received.status();
      if (*received == 0) return;
    }
  }
  void ReadPushed(uint64_t number, std::string* into, uint64_t cookie) {
    endpoint_->Read(RemotePart{number | kPushed, 0, into->size()}, 0,
                    {reinterpret_cast<uint8_t*>(&(*into)[0]), into->size()},
                    cookie);
  }

  // Begins a read with the cookie 7, of a pushed message or by a request.
  // Returns the header of the unit that the peer sends for it.
  UnitHeader Expect(bool is_push, std::string* into) {
    const auto size = static_cast<uint32_t>(into->size());
    if (!is_push) {
      Read(into, 7);
      return {size, UnitType::kReadData, 1};
    }
    ReadPushed(1, into, 7);
    return {size, UnitType::kPush, 1 | kPushed};
  }

  base::UniqueFd here_;
  base::UniqueFd peer_;
};

std::string Random(size_t size, std::mt19937* random) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>((*random)());
  return bytes;
}

TEST_F(TcpReceive, NothingIsNoErrorAndTheEndIs) {
  const absl::StatusOr<size_t> nothing = Receive();
  ASSERT_TRUE(nothing.ok()) << nothing.status();
  EXPECT_EQ(*nothing, 0u);
  const std::string unit = MakeUnit(UnitType::kPacket, 0, "bye");
  Say(unit);
  peer_.Reset();
  EXPECT_EQ(Receive().value(), unit.size());
  EXPECT_EQ(events_.Take(), Lines{"packet bye"});
  EXPECT_TRUE(absl::IsUnavailable(Receive().status()));
  EXPECT_EQ(events_.Take(), Lines()) << "only the owner ends the endpoint";
}

// Tests a doorbell that makes the session receive from its other sockets.
TEST_F(TcpReceive, ADoorbellMayReceiveFromAnotherSocket) {
  int other[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, other), 0);
  const base::UniqueFd there(other[0]);
  const base::UniqueFd here(other[1]);
  const std::string garbage(1000, '?');
  ASSERT_EQ(write(there.get(), garbage.data(), garbage.size()), 1000);
  events_.at_doorbell = [&] { EXPECT_EQ(Discard(here.get()).value(), 1000u); };
  Say(MakeUnit(UnitType::kDoorbell, 0, "") +
      MakeUnit(UnitType::kPacket, 0, "behind"));
  ReceiveAll();
  EXPECT_EQ(events_.Take(), (Lines{"doorbell", "packet behind"}));
}

// Expects that one call fills all of a read's memory. A call that copied would
// receive no more than one buffer.
TEST_F(TcpReceive, OneCallFillsTheWholePlaceOfARead) {
  std::mt19937 random(1);
  for (const bool is_push : {false, true}) {
    SCOPED_TRACE(is_push);
    NewEndpoint();
    std::string into(kLarge, '.');
    const UnitHeader expected = Expect(is_push, &into);
    const std::string sent = Random(kLarge, &random);
    const std::string unit = MakeUnit(expected.type, expected.cookie, sent);
    constexpr size_t kHead = kUnitHeaderBytes + 1;
    ASSERT_EQ(Say(unit.substr(0, kHead)), kHead);
    ASSERT_EQ(Receive().value(), kHead);
    EXPECT_EQ(static_cast<void*>(endpoint_->place().data()), &into[1]);
    EXPECT_EQ(endpoint_->place().size(), kLarge - 1);
    const std::string rest = unit.substr(kHead);
    ASSERT_EQ(Say(rest), rest.size());
    EXPECT_EQ(Receive().value(), rest.size());
    EXPECT_EQ(events_.Take(), Lines{"read 7 OK"});
    EXPECT_TRUE(into == sent);
    EXPECT_TRUE(endpoint_->place().empty());
  }
}

TEST_F(TcpReceive, BytesWithoutAReadHaveNoPlace) {
  std::string into(5, '.');
  Read(&into, 7);
  const std::vector<std::string> units = {
      MakeUnit(UnitType::kPacket, 0, "hello"),
      MakeUnit(UnitType::kPush, 1 | kPushed, "hello"),  // nobody waits for it
      MakeUnit(UnitType::kReadData, 2, "hello"),        // never requested
      MakeUnit(UnitType::kReadData, 1, "four"),         // has another size
  };
  for (const std::string& unit : units) {
    SCOPED_TRACE(ToHex(unit));
    NewEndpoint();
    Read(&into, 7);
    Say(unit.substr(0, kUnitHeaderBytes));
    ReceiveAll();
    EXPECT_TRUE(endpoint_->place().empty());
    Say(unit.substr(kUnitHeaderBytes));
    ReceiveAll();
    EXPECT_EQ(into, ".....");
  }
}

// Tests that a diverted read ends as always, but writes nothing more.
TEST_F(TcpReceive, DivertedReadHasNoPlace) {
  std::mt19937 random(1);
  for (const bool is_push : {false, true}) {
    SCOPED_TRACE(is_push);
    NewEndpoint();
    std::string into(kLarge, '.');
    const UnitHeader expected = Expect(is_push, &into);
    std::string other(5, '.');
    Read(&other, 8);
    const std::string unit =
        MakeUnit(expected.type, expected.cookie, Random(kLarge, &random));
    const size_t half = kLarge / 2;
    ASSERT_EQ(Say(unit.substr(0, half)), half);
    ReceiveAll();
    EXPECT_TRUE(endpoint_->Divert(7));
    EXPECT_TRUE(endpoint_->place().empty());
    into.assign(kLarge, '.');
    Say(unit.substr(half) +
        MakeUnit(UnitType::kReadData, is_push ? 1 : 2, "hello"));
    ReceiveAll();
    EXPECT_EQ(events_.Take(), (Lines{"read 7 OK", "read 8 OK"}));
    EXPECT_EQ(into, std::string(kLarge, '.'));
    EXPECT_EQ(other, "hello");
  }
}

TEST_F(TcpReceive, BrokenEndpointHasNoPlace) {
  std::string into(5, '.');
  Read(&into, 7);
  Say(MakeUnit(UnitType::kReadData, 1, "hello").substr(0, kUnitHeaderBytes));
  ReceiveAll();
  ASSERT_EQ(endpoint_->place().size(), 5u);
  endpoint_->Break(absl::UnavailableError("gone"));
  EXPECT_TRUE(endpoint_->place().empty());
}

// Tests packets, pushes and answers to reads of all sizes, which the peer
// writes in pieces of all sizes.
TEST_F(TcpReceive, AnyPiecesOfAStreamGiveTheSameEvents) {
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937 random(seed);
  const auto size_up_to = [&random](int bits) {
    return 1 + random() % (uint32_t{1} << (1 + random() % bits));
  };
  for (int round = 0; round < 20; ++round) {
    NewEndpoint();
    constexpr int kUnits = 12;
    std::vector<std::string> into(kUnits);
    std::vector<std::string> bodies(kUnits);
    std::string stream;
    Lines expected;
    uint64_t reads = 0;
    for (int i = 0; i < kUnits; ++i) {
      bodies[i] = Random(size_up_to(16), &random);
      const int kind = random() % 3;
      if (kind == 0) {
        bodies[i] = bodies[i].substr(0, 20);
        stream += MakeUnit(UnitType::kPacket, 0, bodies[i]);
        expected.push_back("packet " + bodies[i]);
        into[i] = bodies[i];
        continue;
      }
      into[i].assign(bodies[i].size(), '.');
      expected.push_back(absl::StrCat("read ", i, " OK"));
      if (kind == 1) {
        ReadPushed(i + 1, &into[i], i);
        stream += MakeUnit(UnitType::kPush, (i + 1) | kPushed, bodies[i]);
      } else {
        Read(&into[i], i);
        stream += MakeUnit(UnitType::kReadData, ++reads, bodies[i]);
      }
    }
    for (size_t at = 0; at < stream.size();) {
      at += Say(absl::string_view(stream).substr(at, size_up_to(18)));
      ReceiveAll();
    }
    EXPECT_TRUE(events_.Take() == expected);
    EXPECT_TRUE(into == bodies);
  }
}

TEST_F(TcpReceive, DiscardDropsTheBytesAndSeesTheEnd) {
  Say("anything");
  EXPECT_EQ(Discard(here_.get()).value(), 8u);
  EXPECT_EQ(Discard(here_.get()).value(), 0u);
  peer_.Reset();
  EXPECT_TRUE(absl::IsUnavailable(Discard(here_.get()).status()));
}

}  // namespace
}  // namespace tcp
}  // namespace fabric
}  // namespace penstock
