// Tests how a stream recognises TLS: its first bytes, its handshake, and its
// records.

#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "transport/event_engine/stream/tls_handshake.h"
#include "transport/event_engine/stream/tls_opening.h"
#include "transport/event_engine/stream/tls_records.h"

namespace penstock {
namespace event_engine {
namespace {

absl::Span<const uint8_t> SpanOf(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// Returns the first bytes of a ClientHello, and some bytes that follow.
std::string Hello(char random) {
  std::string hello = {22, 3, 1, 2, 0, 1, 0, 1, '\xfc', 3, 3};
  return hello + std::string(32, random) + "and the rest";
}

TlsOpening::State StateAfter(const std::string& bytes) {
  TlsOpening opening;
  opening.Take(SpanOf(bytes));
  return opening.state();
}

TEST(TlsOpeningTest, RandomNumberIsPartOfTheOpening) {
  TlsOpening opening;
  opening.Take(SpanOf(Hello('r')));
  ASSERT_EQ(opening.state(), TlsOpening::State::kTls);
  EXPECT_EQ(opening.bytes(), Hello('r').substr(0, TlsOpening::kBytes));
  EXPECT_EQ(opening.bytes().substr(11), std::string(32, 'r'));
}

TEST(TlsOpeningTest, BytesMayComeOneByOne) {
  TlsOpening opening;
  const std::string hello = Hello('r');
  for (size_t i = 0; i < TlsOpening::kBytes; ++i) {
    EXPECT_EQ(opening.state(), TlsOpening::State::kIncomplete) << i;
    opening.Take(SpanOf(hello.substr(i, 1)));
  }
  EXPECT_EQ(opening.state(), TlsOpening::State::kTls);
}

TEST(TlsOpeningTest, OtherProtocolsAreKnownByTheirFirstByte) {
  EXPECT_EQ(StateAfter("P"), TlsOpening::State::kOther);  // HTTP/2
  EXPECT_EQ(StateAfter("CONNECT host"), TlsOpening::State::kOther);
}

TEST(TlsOpeningTest, EachFixedByteIsChecked) {
  for (size_t at : {0, 1, 5, 9}) {
    std::string hello = Hello('r');
    hello[at] ^= 0x40;
    EXPECT_EQ(StateAfter(hello), TlsOpening::State::kOther) << at;
  }
}

std::string Record(size_t size) {
  std::string record = {23, 3, 3, static_cast<char>(size >> 8),
                        static_cast<char>(size & 0xff)};
  return record + std::string(size, 'x');
}

TEST(TlsRecordsTest, BoundariesAreFoundWithAnyPieces) {
  const std::vector<size_t> sizes = {0, 1, 300, 0, 0, 16 * 1024, 255, 256};
  std::string stream;
  std::vector<bool> is_boundary = {true};
  for (size_t size : sizes) {
    stream += Record(size);
    is_boundary.resize(stream.size());
    is_boundary.push_back(true);
  }
  for (size_t piece : {1, 2, 3, 5, 7, 64, 1000}) {
    TlsRecords records;
    for (size_t at = 0; at < stream.size(); at += piece) {
      EXPECT_EQ(records.at_boundary(), is_boundary[at]) << at;
      records.Take(SpanOf(stream.substr(at, piece)));
    }
    EXPECT_TRUE(records.at_boundary());
  }
}

TEST(TlsRecordsTest, OneRecordIsTakenAtATime) {
  const std::string stream = Record(0) + Record(300);
  TlsRecords records;
  EXPECT_EQ(records.TakeRecord(SpanOf(stream)), 5u);
  EXPECT_EQ(records.TakeRecord(SpanOf(stream.substr(5, 2))), 2u);
  EXPECT_FALSE(records.at_boundary());
  EXPECT_EQ(records.TakeRecord(SpanOf(stream.substr(7) + "more")), 303u);
  EXPECT_TRUE(records.at_boundary());
}

// Returns a record of `size` bytes.
std::string Record(char type, size_t size = 10) {
  return std::string{type, 3, 3, 0, static_cast<char>(size)} +
         std::string(size, 'x');
}

constexpr char kHandshake = 22, kApplicationData = 23;

// Returns a ClientHello as one record.
std::string HelloRecord() {
  std::string hello = {kHandshake, 3, 1, 0, 100, 1, 0, 0, 96, 3, 3};
  return hello + std::string(94, 'r');
}

// One end of a handshake.
class Handshake {
 public:
  explicit Handshake(bool is_client) : handshake_(is_client) {}
  TlsHandshake::State Sends(const std::string& bytes) {
    handshake_.OnSent(SpanOf(bytes));
    return handshake_.state();
  }
  TlsHandshake::State Receives(const std::string& bytes) {
    handshake_.OnReceived(SpanOf(bytes));
    return handshake_.state();
  }
  std::string opening() const { return handshake_.opening(); }

 private:
  TlsHandshake handshake_;
};

constexpr auto kInProgress = TlsHandshake::State::kInProgress;
constexpr auto kOver = TlsHandshake::State::kOver;

TEST(TlsHandshakeTest, ClientIsDoneWhenItSendsApplicationData) {
  Handshake client(/*is_client=*/true);
  EXPECT_EQ(client.Sends(HelloRecord()), kInProgress);
  EXPECT_EQ(client.Receives(Record(kHandshake) + Record(kApplicationData)),
            kInProgress);
  EXPECT_EQ(client.Sends(Record(20, 1)), kInProgress);
  EXPECT_EQ(client.Sends(Record(kApplicationData)), kOver);
  EXPECT_EQ(client.opening(), HelloRecord().substr(0, TlsOpening::kBytes));
}

TEST(TlsHandshakeTest, ServerIsDoneWhenItAnswersApplicationData) {
  Handshake server(/*is_client=*/false);
  EXPECT_EQ(server.Receives(HelloRecord()), kInProgress);
  EXPECT_EQ(server.Sends(Record(kHandshake) + Record(kApplicationData)),
            kInProgress);
  EXPECT_EQ(server.Receives(Record(20, 1) + Record(kApplicationData)),
            kInProgress);
  EXPECT_EQ(server.Sends(Record(kApplicationData)), kOver);
  EXPECT_EQ(server.opening(), HelloRecord().substr(0, TlsOpening::kBytes));
}

// In TLS 1.2, application data come only after both Finished messages.
TEST(TlsHandshakeTest, MessagesOfTheHandshakeAreNoProof) {
  Handshake server(/*is_client=*/false);
  server.Receives(HelloRecord());
  server.Sends(Record(kHandshake));
  server.Receives(Record(kHandshake) + Record(20, 1) + Record(kHandshake));
  EXPECT_EQ(server.Sends(Record(20, 1) + Record(kHandshake)), kInProgress);
  server.Receives(Record(kApplicationData));
  EXPECT_EQ(server.Sends(Record(kApplicationData)), kOver);
}

// A stranger cannot decrypt. The stranger sends an apparent answer too early,
// or makes the server wait for its end.
TEST(TlsHandshakeTest, StrangersGetNothing) {
  Handshake early(/*is_client=*/false);
  early.Receives(HelloRecord() + Record(kApplicationData));
  EXPECT_EQ(early.Sends(Record(kHandshake)), kInProgress);
  EXPECT_EQ(early.Sends(Record(kHandshake)), kInProgress);

  Handshake unfinished(/*is_client=*/false);
  unfinished.Receives(HelloRecord());
  unfinished.Sends(Record(kHandshake));  // asks for another ClientHello
  const std::string record = Record(kApplicationData);
  unfinished.Receives(HelloRecord() + record.substr(0, record.size() - 1));
  EXPECT_EQ(unfinished.Sends(Record(kHandshake)), kInProgress);
  unfinished.Receives(record.substr(record.size() - 1));
  EXPECT_EQ(unfinished.Sends(Record(kHandshake)), kOver);
}

// Returns a server that has requested a second ClientHello (HelloRetryRequest).
// From then on, the server skips application data if the client has announced
// early data.
Handshake ServerThatAsksAgain() {
  Handshake server(/*is_client=*/false);
  server.Receives(HelloRecord());
  server.Sends(Record(kHandshake) + Record(20, 1));
  return server;
}

TEST(TlsHandshakeTest, SkippedEarlyDataAreNoProof) {
  const std::string data = Record(kApplicationData);
  for (const std::string& flight :
       {data + HelloRecord(), HelloRecord() + data, data + HelloRecord() + data,
        data + Record(20, 1) + HelloRecord()}) {
    for (size_t split = 0; split < flight.size(); ++split) {
      Handshake server = ServerThatAsksAgain();
      server.Receives(flight.substr(0, split));
      server.Receives(flight.substr(split));
      ASSERT_EQ(server.Sends(Record(kHandshake) + data), kInProgress) << split;
      // The client's Finished, and the server's tickets.
      server.Receives(data);
      ASSERT_EQ(server.Sends(data), kOver) << split;
    }
  }
}

TEST(TlsHandshakeTest, EarlyDataAndHelloMayComeApart) {
  Handshake server = ServerThatAsksAgain();
  server.Receives(Record(kApplicationData));
  server.Receives(HelloRecord().substr(0, 1));
  EXPECT_EQ(server.Sends(Record(kHandshake)), kInProgress);
  server.Receives(HelloRecord().substr(1));
  EXPECT_EQ(server.Sends(Record(kHandshake)), kInProgress);
}

TEST(TlsHandshakeTest, ApplicationDataWithoutAWholeHelloAreNoProof) {
  Handshake client(/*is_client=*/true);
  EXPECT_EQ(client.Sends(HelloRecord().substr(0, 5)), kInProgress);
  EXPECT_EQ(client.Sends(Record(kApplicationData)),
            TlsHandshake::State::kOther);
}

TEST(TlsHandshakeTest, OtherProtocolsAreKnownAtBothEnds) {
  EXPECT_EQ(Handshake(true).Sends("PRI * HTTP/2.0"),
            TlsHandshake::State::kOther);
  EXPECT_EQ(Handshake(false).Receives("PRI * HTTP/2.0"),
            TlsHandshake::State::kOther);
}

}  // namespace
}  // namespace event_engine
}  // namespace penstock
