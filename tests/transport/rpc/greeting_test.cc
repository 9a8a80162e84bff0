#include "transport/rpc/greeting.h"

#include <string>

#include "gtest/gtest.h"

namespace penstock {
namespace rpc {
namespace {

TEST(Greeting, ComesThroughInAnyPieces) {
  const std::string bytes = EncodeGreeting({1, 2, "secret"}) + "behind";
  for (size_t size = 0; size <= bytes.size(); ++size) {
    absl::string_view rest = absl::string_view(bytes).substr(0, size);
    const absl::StatusOr<absl::optional<Greeting>> greeting =
        TakeGreeting(&rest);
    ASSERT_TRUE(greeting.ok()) << size;
    if (size < bytes.size() - 6) {
      EXPECT_FALSE(greeting->has_value()) << size;
      continue;
    }
    ASSERT_TRUE(greeting->has_value()) << size;
    EXPECT_EQ((*greeting)->oldest, 1);
    EXPECT_EQ((*greeting)->newest, 2);
    EXPECT_EQ((*greeting)->token, "secret");
    EXPECT_EQ(rest, bytes.substr(bytes.size() - 6, size + 6 - bytes.size()));
  }
}

TEST(Greeting, AnswerComesThroughInAnyPieces) {
  const std::string bytes = EncodeAnswer({0, "why not"});
  for (size_t size = 0; size <= bytes.size(); ++size) {
    absl::string_view rest = absl::string_view(bytes).substr(0, size);
    const absl::StatusOr<absl::optional<Answer>> answer = TakeAnswer(&rest);
    ASSERT_TRUE(answer.ok()) << size;
    ASSERT_EQ(answer->has_value(), size == bytes.size());
    if (answer->has_value()) {
      EXPECT_EQ((*answer)->refusal, "why not");
    }
  }
}

TEST(Greeting, OtherProtocolsAreSeenFromTheirFirstByte) {
  for (const char* text : {"G", "PRI * HTTP/2.0", "\x16\x03", "PSTKrpc!"}) {
    absl::string_view rest = text;
    EXPECT_TRUE(absl::IsInvalidArgument(TakeGreeting(&rest).status())) << text;
  }
}

TEST(Greeting, LongTextsAreRefusedBeforeTheyCome) {
  std::string bytes = EncodeGreeting({1, 2, std::string(kMaxTokenBytes, 't')});
  absl::string_view rest = bytes;
  EXPECT_TRUE(TakeGreeting(&rest)->has_value());
  bytes[10] = static_cast<char>(kMaxTokenBytes + 1);
  rest = absl::string_view(bytes).substr(0, 12);
  EXPECT_TRUE(absl::IsInvalidArgument(TakeGreeting(&rest).status()));
}

TEST(Greeting, LongRefusalIsCut) {
  const std::string bytes = EncodeAnswer({0, std::string(10000, 'x')});
  absl::string_view rest = bytes;
  const absl::StatusOr<absl::optional<Answer>> answer = TakeAnswer(&rest);
  ASSERT_TRUE(answer.ok() && answer->has_value());
  EXPECT_EQ((*answer)->refusal.size(), kMaxRefusalBytes);
}

TEST(Greeting, TokensAreCompared) {
  EXPECT_TRUE(IsSameToken("abc", "abc"));
  EXPECT_FALSE(IsSameToken("abc", "abd"));
  EXPECT_FALSE(IsSameToken("abc", "ab"));
  EXPECT_FALSE(IsSameToken("", "abc"));
}

}  // namespace
}  // namespace rpc
}  // namespace penstock
