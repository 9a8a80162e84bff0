// Messages without shortage: order, sizes, whose memory they are.

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

TEST_P(Conformance, MessagesArriveInOrderAndExactlyOnce) {
  Texts sent[2];
  for (int i = 0; i < 500; ++i) {
    const Side from = i % 3 == 0 ? Side::kB : Side::kA;
    sent[static_cast<int>(from)].push_back(absl::StrCat("message ", i));
    ASSERT_NO_FATAL_FAILURE(SendSurely(from, absl::StrCat("message ", i)));
  }
  Pump();
  EXPECT_EQ(at_b().messages, sent[0]);
  EXPECT_EQ(at_a().messages, sent[1]);
}

TEST_P(Conformance, EmptyMessageArrives) {
  const Texts sent = {"", "x", "", ""};
  for (const std::string& text : sent) {
    ASSERT_NO_FATAL_FAILURE(SendSurely(Side::kA, text));
  }
  Pump();
  EXPECT_EQ(at_b().messages, sent);
}

TEST_P(Conformance, MessageOfTheFullSizeArrives) {
  for (size_t size : {max_message() - 1, max_message()}) {
    for (Side from : kSides) {
      const std::string sent = RandomBytes(size, size);
      at(Other(from)).messages.clear();
      ASSERT_NO_FATAL_FAILURE(SendSurely(from, sent));
      Pump();
      ASSERT_EQ(at(Other(from)).messages.size(), 1u);
      EXPECT_TRUE(at(Other(from)).messages[0] == sent) << size;
    }
  }
}

// Where a fabric has paddings and inline limits, they lie among these.
TEST_P(Conformance, MessageOfEverySmallSizeArrives) {
  Texts sent;
  for (size_t size = 0; size <= std::min<size_t>(max_message(), 300); ++size) {
    sent.push_back(RandomBytes(size, size));
    ASSERT_NO_FATAL_FAILURE(SendSurely(Side::kA, sent.back()));
  }
  Pump();
  EXPECT_TRUE(at_b().messages == sent);
}

TEST_P(Conformance, SenderMayChangeItsBufferAfterSend) {
  const std::string sent = RandomBytes(max_message(), 1);
  std::string buffer = sent;
  ASSERT_TRUE(Send(Side::kA, buffer));
  std::fill(buffer.begin(), buffer.end(), 'x');
  Pump();
  ASSERT_EQ(at_b().messages.size(), 1u);
  EXPECT_TRUE(at_b().messages[0] == sent);
}

// The receiver parses the message where it lies. Meanwhile it answers, and its
// peer goes on sending: neither may write there.
TEST_P(Conformance, MessageStaysTheSameUntilItsEventReturns) {
  const size_t size = std::min<size_t>(max_message(), 5000);
  Texts sent = {RandomBytes(size, 1)};
  at_b().on_message = [&](absl::Span<const uint8_t> message) {
    if (at_b().messages.size() > 1) return;
    const std::string other(max_message(), 'o');
    Send(Side::kB, other);
    while (sent.size() < 50 && Send(Side::kA, other)) sent.push_back(other);
    EXPECT_TRUE(TextOf(message) == sent[0]);
  };
  ASSERT_TRUE(Send(Side::kA, sent[0]));
  Pump();
  EXPECT_TRUE(at_b().messages == sent);
}

TEST_P(Conformance, AnswersFromWithinAMessageArrive) {
  for (Side side : kSides) {
    at(side).on_message = [this, side](absl::Span<const uint8_t> message) {
      if (message.size() < 20) Send(side, TextOf(message) + "+");
    };
  }
  ASSERT_TRUE(Send(Side::kA, ""));
  Pump();
  EXPECT_EQ(at_b().messages.size(), 11u);
  ASSERT_EQ(at_a().messages.size(), 10u);
  EXPECT_EQ(at_a().messages.back(), std::string(19, '+'));
}

}  // namespace
}  // namespace conformance
}  // namespace fabric
}  // namespace penstock
