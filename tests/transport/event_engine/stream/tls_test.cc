// Tests what a stream knows of TLS: its first bytes, and its records.

#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
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

}  // namespace
}  // namespace event_engine
}  // namespace penstock
