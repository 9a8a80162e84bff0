#include "transport/fabric/tcp/stripes/greeting.h"

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"

namespace penstock {
namespace fabric {
namespace stripes {
namespace {

const char kToken[] = "0123456789abcdef";

std::string Bytes(const std::string& numbers) {
  return "PSTKstr?" + numbers + kToken;
}

Verdict Inspect(const std::string& bytes) {
  Greeting greeting;
  return InspectGreeting(bytes, &greeting);
}

TEST(StripesGreeting, HasTheBytesOfTheDocument) {
  Greeting greeting;
  greeting.count = 4;
  greeting.index = 3;
  greeting.token = kToken;
  EXPECT_EQ(EncodeGreeting(greeting), Bytes("\4\3"));
  EXPECT_EQ(EncodeGreeting(greeting).size(), kGreetingBytes);
  Greeting parsed;
  ASSERT_EQ(InspectGreeting(Bytes("\4\3"), &parsed), Verdict::kGreeting);
  EXPECT_EQ(parsed.count, 4);
  EXPECT_EQ(parsed.index, 3);
  EXPECT_EQ(parsed.token, kToken);
}

TEST(StripesGreeting, EachBeginningNeedsMore) {
  const std::string whole = Bytes("\4\3");
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_EQ(Inspect(whole.substr(0, size)), Verdict::kNeedMore) << size;
  }
}

TEST(StripesGreeting, BytesAfterItAreRefused) {
  EXPECT_EQ(Inspect(Bytes("\4\3") + "x"), Verdict::kOther);
}

TEST(StripesGreeting, ImpossibleNumbersAreRefused) {
  for (const std::string& numbers :
       {std::string("\4\4"), std::string("\1\0", 2), std::string("\0\0", 2),
        std::string("\21\0", 2), std::string("\377\376")}) {
    EXPECT_EQ(Inspect(Bytes(numbers)), Verdict::kOther);
  }
  EXPECT_EQ(Inspect(Bytes(std::string("\20\17"))), Verdict::kGreeting);
}

TEST(StripesGreeting, TheAnswerHasTheBytesOfTheDocument) {
  const absl::string_view answer = "PSTKstr!";
  EXPECT_EQ(Answer(), answer);
  EXPECT_EQ(answer.size(), kAnswerBytes);
  for (size_t size = 0; size <= answer.size(); ++size) {
    EXPECT_TRUE(IsAnswer(answer.substr(0, size)));
  }
  EXPECT_FALSE(IsAnswer("PSTKstr?"));
  EXPECT_FALSE(IsAnswer("HTTP"));
}

TEST(StripesGreeting, OtherProtocolsAreNone) {
  EXPECT_EQ(Inspect("PRI * HTTP/2.0"), Verdict::kOther);
  EXPECT_EQ(Inspect("PSTKrpc?"), Verdict::kOther);
  EXPECT_EQ(Inspect("\x16\x03\x01"), Verdict::kOther);
}

}  // namespace
}  // namespace stripes
}  // namespace fabric
}  // namespace penstock
