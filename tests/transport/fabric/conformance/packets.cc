// Tests packets while there is credit: their order, their sizes, and the owner
// of their memory.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/conformance/conformance.h"

namespace penstock {
namespace fabric {
namespace conformance {
namespace {

using Texts = std::vector<std::string>;

TEST_P(Conformance, NothingHappensOnAnIdleConnection) {
  Pump();
  EXPECT_TRUE(at_a().IsSilent());
  EXPECT_TRUE(at_b().IsSilent());
}

TEST_P(Conformance, PacketsArriveInOrderAndExactlyOnce) {
  Texts sent[2];
  for (int i = 0; i < 500; ++i) {
    const Side from = i % 3 == 0 ? Side::kB : Side::kA;
    sent[static_cast<int>(from)].push_back(absl::StrCat("packet ", i));
    ASSERT_NO_FATAL_FAILURE(SendSurely(from, absl::StrCat("packet ", i)));
  }
  Pump();
  EXPECT_EQ(at_b().packets, sent[0]);
  EXPECT_EQ(at_a().packets, sent[1]);
}

TEST_P(Conformance, EmptyPacketArrives) {
  const Texts sent = {"", "x", "", ""};
  for (const std::string& text : sent) {
    ASSERT_NO_FATAL_FAILURE(SendSurely(Side::kA, text));
  }
  Pump();
  EXPECT_EQ(at_b().packets, sent);
}

TEST_P(Conformance, PacketOfTheFullSizeArrives) {
  for (size_t size : {max_packet() - 1, max_packet()}) {
    for (Side from : kSides) {
      const std::string sent = RandomBytes(size, size);
      at(Other(from)).packets.clear();
      ASSERT_NO_FATAL_FAILURE(SendSurely(from, sent));
      Pump();
      ASSERT_EQ(at(Other(from)).packets.size(), 1u);
      EXPECT_TRUE(at(Other(from)).packets[0] == sent) << size;
    }
  }
}

// Sends packets of every small size, including those at which a fabric changes
// its padding, or no longer sends inline.
TEST_P(Conformance, PacketOfEverySmallSizeArrives) {
  Texts sent;
  for (size_t size = 0; size <= std::min<size_t>(max_packet(), 300); ++size) {
    sent.push_back(RandomBytes(size, size));
    ASSERT_NO_FATAL_FAILURE(SendSurely(Side::kA, sent.back()));
  }
  Pump();
  EXPECT_TRUE(at_b().packets == sent);
}

TEST_P(Conformance, SenderMayChangeItsBufferAfterSend) {
  const std::string sent = RandomBytes(max_packet(), 1);
  std::string buffer = sent;
  ASSERT_TRUE(Send(Side::kA, buffer));
  std::fill(buffer.begin(), buffer.end(), 'x');
  Pump();
  ASSERT_EQ(at_b().packets.size(), 1u);
  EXPECT_TRUE(at_b().packets[0] == sent);
}

// Tests that nobody writes to a packet while its receiver parses it in place.
// Meanwhile the receiver answers, and the peer continues to send.
TEST_P(Conformance, PacketStaysTheSameUntilItsEventReturns) {
  const size_t size = std::min<size_t>(max_packet(), 5000);
  Texts sent = {RandomBytes(size, 1)};
  at_b().on_packet = [&](absl::Span<const uint8_t> packet) {
    if (at_b().packets.size() > 1) return;
    const std::string other(max_packet(), 'o');
    Send(Side::kB, other);
    while (sent.size() < 50 && Send(Side::kA, other)) sent.push_back(other);
    EXPECT_TRUE(TextOf(packet) == sent[0]);
  };
  ASSERT_TRUE(Send(Side::kA, sent[0]));
  Pump();
  EXPECT_TRUE(at_b().packets == sent);
}

TEST_P(Conformance, AnswersFromWithinAPacketArrive) {
  for (Side side : kSides) {
    at(side).on_packet = [this, side](absl::Span<const uint8_t> packet) {
      if (packet.size() < 20) Send(side, TextOf(packet) + "+");
    };
  }
  ASSERT_TRUE(Send(Side::kA, ""));
  Pump();
  EXPECT_EQ(at_b().packets.size(), 11u);
  ASSERT_EQ(at_a().packets.size(), 10u);
  EXPECT_EQ(at_a().packets.back(), std::string(19, '+'));
}

}  // namespace
}  // namespace conformance
}  // namespace fabric
}  // namespace penstock
