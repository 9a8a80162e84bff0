// Tests the input of an endpoint: honest units, cut at any place of the stream,
// and random bytes.

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/tcp/tcp_test_util.h"
#include "transport/fabric/tcp/endpoint.h"

namespace penstock {
namespace fabric {
namespace tcp {
namespace {

// An endpoint that has exposed ten letters as region 1, and waits for two
// reads.
class TcpInput : public TcpEndpointTest {
 protected:
  void Prepare() {
    NewEndpoint();
    Expose("abcdefghij");
    for (std::string& into : into_) into.assign(5, '.');
    Read(&into_[0], 100);
    Read(&into_[1], 101);
    (void)TakeWrites();
  }
  // Expects that the endpoint breaks with a status that contains `why`, and
  // that it breaks only once.
  void ExpectBreaks(const std::string& bytes, const std::string& why) {
    SCOPED_TRACE(ToHex(bytes.substr(0, 40)));
    Prepare();
    Receive(bytes);
    EXPECT_EQ(events_.Take(),
              (Lines{"read 100 failed", "read 101 failed", "broken"}));
    EXPECT_TRUE(absl::IsInvalidArgument(events_.cause())) << events_.cause();
    EXPECT_EQ(events_.cause().message(), why);
    Receive(MakeUnit(UnitType::kPacket, 0, "after the end"));
    EXPECT_EQ(events_.Take(), Lines{});
    EXPECT_FALSE(pipe_.writing());
  }

  std::string into_[2];
};

// Returns one unit of each type, and an empty packet.
const std::string& HonestStream() {
  static const std::string& stream = *new std::string(absl::StrCat(
      MakeUnit(UnitType::kPacket, 0, "hello"),
      MakeUnit(UnitType::kReadData, 2, "12345"),
      MakeUnit(UnitType::kDoorbell, 0, ""), MakeRead(7, {1, 3, 4}),
      MakeUnit(UnitType::kPacket, 0, ""), MakeUnit(UnitType::kReadError, 1, ""),
      MakeRead(8, {1, 9, 2}), MakeUnit(UnitType::kPacket, 0, "end")));
  return stream;
}

class TcpHonestInput : public TcpInput {
 protected:
  void ExpectUnderstood() {
    EXPECT_EQ(events_.Take(),
              (Lines{"packet hello", "read 101 OK", "doorbell", "packet ",
                     "read 100 failed", "packet end"}));
    EXPECT_EQ(into_[1], "12345");
    EXPECT_EQ(into_[0], ".....");
    EXPECT_EQ(ToHex(TakeWrites()),
              ToHex(MakeUnit(UnitType::kReadData, 7, "defg") +
                    MakeUnit(UnitType::kReadError, 8, "")));
  }
};

TEST_F(TcpHonestInput, IsUnderstoodWithEveryCut) {
  for (size_t cut = 0; cut <= HonestStream().size(); ++cut) {
    SCOPED_TRACE(cut);
    Prepare();
    Receive(HonestStream().substr(0, cut));
    Receive(HonestStream().substr(cut));
    ExpectUnderstood();
  }
}

TEST_F(TcpHonestInput, IsUnderstoodInPiecesOfEverySize) {
  for (size_t size = 1; size <= HonestStream().size(); ++size) {
    SCOPED_TRACE(size);
    Prepare();
    for (size_t at = 0; at < HonestStream().size(); at += size) {
      Receive(HonestStream().substr(at, size));
    }
    ExpectUnderstood();
  }
}

TEST_F(TcpHonestInput, CutShortDeliversWhatIsWhole) {
  Prepare();
  Receive(HonestStream().substr(0, HonestStream().size() - 1));
  EXPECT_EQ(events_.Take(), (Lines{"packet hello", "read 101 OK", "doorbell",
                                   "packet ", "read 100 failed"}));
}

TEST_F(TcpInput, MalformedHeadersBreak) {
  const struct {
    const char* hex;
    const char* why;
  } kTable[] = {
      {"00000000 00000000", "malformed unit on tcp: type 0, length 0"},
      {"00000000 06000000", "malformed unit on tcp: type 6, length 0"},
      {"14000000 ff000000", "malformed unit on tcp: type 255, length 20"},
      {"01000100 01000000", "malformed unit on tcp: type 1, length 65537"},
      {"ffffffff 01000000", "malformed unit on tcp: type 1, length 4294967295"},
      {"01000000 02000000", "malformed unit on tcp: type 2, length 1"},
      {"13000000 03000000", "malformed unit on tcp: type 3, length 19"},
      {"15000000 03000000", "malformed unit on tcp: type 3, length 21"},
      {"00000000 04000000", "malformed unit on tcp: type 4, length 0"},
      {"01001000 04000000", "malformed unit on tcp: type 4, length 1048577"},
      {"01000000 05000000", "malformed unit on tcp: type 5, length 1"},
      {"00000000 02000001", "malformed unit on tcp: type 2, length 0"},
  };
  for (const auto& row : kTable) {
    ExpectBreaks(FromHex(row.hex) + FromHex("0100000000000000"), row.why);
  }
}

TEST_F(TcpInput, AnswersThatWereNotAskedForBreak) {
  const char kData[] = "tcp: data without a request";
  // Answers read 3, which does not exist: only reads 1 and 2 wait.
  ExpectBreaks(MakeUnit(UnitType::kReadData, 3, "12345"), kData);
  ExpectBreaks(MakeUnit(UnitType::kReadData, 0, "12345"), kData);
  ExpectBreaks(MakeUnit(UnitType::kReadData, 1, "1234"), kData);
  ExpectBreaks(MakeUnit(UnitType::kReadData, 1, "123456"), kData);
  ExpectBreaks(MakeUnit(UnitType::kReadData, 1, std::string(1048576, 'x')),
               kData);
  // Sends a cookie that the owner has chosen. An honest peer does not know it.
  ExpectBreaks(MakeUnit(UnitType::kReadData, 100, "12345"), kData);
  ExpectBreaks(MakeUnit(UnitType::kReadError, 3, ""),
               "tcp: an answer without a read");
}

TEST_F(TcpInput, SecondAnswerBreaks) {
  for (UnitType first : {UnitType::kReadData, UnitType::kReadError}) {
    for (UnitType second : {UnitType::kReadData, UnitType::kReadError}) {
      Prepare();
      const auto body = [](UnitType type) {
        return type == UnitType::kReadData ? "12345" : "";
      };
      Receive(MakeUnit(first, 1, body(first)));
      EXPECT_EQ(events_.Take().size(), 1u);
      Receive(MakeUnit(second, 1, body(second)));
      EXPECT_EQ(events_.Take(), (Lines{"read 101 failed", "broken"}));
    }
  }
}

TEST_F(TcpInput, WrongLengthOfAnAnswerTouchesNoMemory) {
  ExpectBreaks(MakeUnit(UnitType::kReadData, 1, "123456"),
               "tcp: data without a request");
  EXPECT_EQ(into_[0], ".....");
}

TEST_F(TcpInput, ReadOfAForbiddenSizeBreaks) {
  for (uint32_t length : {uint32_t{0}, uint32_t{1048577}, ~uint32_t{0}}) {
    ExpectBreaks(MakeRead(1, {1, 0, length}), "tcp: read of a forbidden size");
  }
}

// Reads a region that does not exist. This is no violation by the peer, because
// the owner may have withdrawn the region meanwhile.
TEST_F(TcpInput, ReadOfWhatIsNotThereIsAnsweredWithAnError) {
  const ReadRequest kRequests[] = {
      {2, 0, 1},
      {0, 0, 1},
      {~uint64_t{0}, 0, 1},
      {1, 10, 1},
      {1, 9, 2},
      {1, 0, 11},
      {1, 0, 1048576},
      {1, 11, 1},
      {1, 1u << 31, 10},
      {1, ~uint64_t{0}, 1},
      {1, ~uint64_t{0} - 4, 10},
  };
  for (const ReadRequest& request : kRequests) {
    Prepare();
    Receive(MakeRead(77, request));
    EXPECT_EQ(ToHex(TakeWrites()),
              ToHex(FromHex("00000000 05000000 4d00000000000000")));
    EXPECT_EQ(events_.Take(), Lines{});
  }
}

// Damages the stream. Any bytes must lead to events and answers, or to the
// break. Each read must end at most once.
TEST_F(TcpInput, DamageBreaksAtMostOnce) {
  std::mt19937_64 random(17);
  int broke = 0;
  for (int i = 0; i < 20 * 1000; ++i) {
    std::string bytes = HonestStream();
    for (uint64_t damages = 1 + random() % 3; damages > 0; --damages) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    Prepare();
    const size_t cut = random() % bytes.size();
    Receive(bytes.substr(0, cut));
    Receive(bytes.substr(cut));
    (void)TakeWrites();
    int ends[2] = {0, 0};
    const Lines lines = events_.Take();
    for (const std::string& line : lines) {
      if (line.substr(0, 8) == "read 100") ++ends[0];
      if (line.substr(0, 8) == "read 101") ++ends[1];
      if (line == "broken") ++broke;
    }
    ASSERT_LE(ends[0], 1) << ToHex(bytes);
    ASSERT_LE(ends[1], 1) << ToHex(bytes);
    ASSERT_TRUE(events_.cause().ok() || lines.back() == "broken");
  }
  EXPECT_GT(broke, 1000);
}

}  // namespace
}  // namespace tcp
}  // namespace fabric
}  // namespace penstock
