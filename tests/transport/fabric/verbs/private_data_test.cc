// Tests the first bytes of a connection, and the proofs in them.

#include "transport/fabric/verbs/formats/private_data.h"

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

constexpr char kToken[] = "0123456789abcdef";
constexpr uint32_t kClientQp = 0x11;
constexpr uint32_t kServerQp = 0x22;
constexpr size_t kHeadBytes = 12;

Terms SomeTerms() {
  Terms terms;
  terms.receives = 16;
  terms.reads = 8;
  return terms;
}

std::string SomeRequest() {
  return MakeRequest(SomeTerms(), kToken, kClientQp);
}
std::string SomeAnswer() {
  return MakeAnswer(SomeTerms(), kToken, kClientQp, kServerQp);
}

std::string WithByte(std::string bytes, size_t at, char value) {
  bytes[at] = value;
  return bytes;
}

// Compares with bytes from another implementation, Python's hmac.
TEST(PrivateDataTest, GoldenBytes) {
  EXPECT_EQ(absl::BytesToHexString(SomeRequest()),
            "505652420100100008000000"  // "PVRB", 1, 16, 8, 0
            "cd124de9855e1cfe"
            "17a2463ae7fe8b46fa6a7be6cb5b055a"
            "048a094454622803ee00a224de1faffb");
  EXPECT_EQ(absl::BytesToHexString(SomeAnswer()),
            "505652420100100008000000"
            "f2163cd41c0c51ac946b4c9f4a805edd"
            "bb9476c3691a680105d7d0b37a9347c3");
}

TEST(PrivateDataTest, ParsingGivesBackWhatWasMade) {
  const absl::StatusOr<Request> request = ParseRequest(SomeRequest());
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->terms.receives, 16);
  EXPECT_EQ(request->terms.reads, 8);
  EXPECT_EQ(request->token_name, NameOfToken(kToken));
  const absl::StatusOr<Terms> answer = ParseAnswer(SomeAnswer());
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->receives, 16);
  EXPECT_EQ(answer->reads, 8);
}

TEST(PrivateDataTest, TokenItselfIsNotInThem) {
  EXPECT_FALSE(absl::StrContains(SomeRequest(), kToken));
  EXPECT_FALSE(absl::StrContains(SomeAnswer(), kToken));
  EXPECT_EQ(NameOfToken(kToken).size(), kTokenNameBytes);
  EXPECT_NE(NameOfToken(kToken), NameOfToken("another token"));
}

TEST(PrivateDataTest, EveryTruncationIsRejected) {
  const std::string request = SomeRequest();
  for (size_t size = 0; size < request.size(); ++size) {
    EXPECT_FALSE(ParseRequest(request.substr(0, size)).ok()) << size;
    EXPECT_FALSE(RequestIsProven(request.substr(0, size), kToken, kClientQp))
        << size;
  }
  const std::string answer = SomeAnswer();
  for (size_t size = 0; size < answer.size(); ++size) {
    EXPECT_FALSE(ParseAnswer(answer.substr(0, size)).ok()) << size;
    EXPECT_FALSE(
        AnswerIsProven(answer.substr(0, size), kToken, kClientQp, kServerQp))
        << size;
  }
}

TEST(PrivateDataTest, PaddingOfTheConnectionManagerIsIgnored) {
  const std::string request = SomeRequest() + std::string(4, '\0');
  EXPECT_TRUE(ParseRequest(request).ok());
  EXPECT_TRUE(RequestIsProven(request, kToken, kClientQp));
  const std::string answer = SomeAnswer() + std::string(152, '\0');
  EXPECT_TRUE(ParseAnswer(answer).ok());
  EXPECT_TRUE(AnswerIsProven(answer, kToken, kClientQp, kServerQp));
}

TEST(PrivateDataTest, OtherVersionIsACleanError) {
  for (const size_t at : {4, 5}) {
    const absl::Status status =
        ParseRequest(WithByte(SomeRequest(), at, 9)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_TRUE(absl::StrContains(status.message(), "version")) << status;
    EXPECT_EQ(ParseAnswer(WithByte(SomeAnswer(), at, 9)).status().code(),
              absl::StatusCode::kFailedPrecondition);
  }
}

TEST(PrivateDataTest, OtherProtocolIsRejected) {
  for (size_t at = 0; at < 4; ++at) {
    EXPECT_EQ(ParseRequest(WithByte(SomeRequest(), at, '?')).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
  EXPECT_FALSE(ParseRequest(std::string(kRequestBytes, '\0')).ok());
}

TEST(PrivateDataTest, UselessTermsAreRejected) {
  Terms terms = SomeTerms();
  terms.receives = 3;
  EXPECT_FALSE(ParseRequest(MakeRequest(terms, kToken, kClientQp)).ok());
  terms.receives = 4;
  EXPECT_TRUE(ParseRequest(MakeRequest(terms, kToken, kClientQp)).ok());
  terms.reads = 0;
  EXPECT_FALSE(ParseRequest(MakeRequest(terms, kToken, kClientQp)).ok());
  EXPECT_FALSE(ParseRequest(WithByte(SomeRequest(), 10, 1)).ok()) << "reserved";
}

TEST(PrivateDataTest, ProofIsBoundToEveryByteBeforeIt) {
  for (size_t at = 0; at < kRequestBytes; ++at) {
    std::string request = SomeRequest();
    request[at] ^= 1;
    EXPECT_FALSE(RequestIsProven(request, kToken, kClientQp)) << at;
  }
  for (size_t at = 0; at < kAnswerBytes; ++at) {
    std::string answer = SomeAnswer();
    answer[at] ^= 1;
    EXPECT_FALSE(AnswerIsProven(answer, kToken, kClientQp, kServerQp)) << at;
  }
}

TEST(PrivateDataTest, ProofIsBoundToTokenAndQueuePairs) {
  EXPECT_TRUE(RequestIsProven(SomeRequest(), kToken, kClientQp));
  EXPECT_FALSE(RequestIsProven(SomeRequest(), "another token", kClientQp));
  EXPECT_FALSE(RequestIsProven(SomeRequest(), "", kClientQp));
  EXPECT_FALSE(RequestIsProven(SomeRequest(), kToken, kClientQp + 1));
  const std::string answer = SomeAnswer();
  EXPECT_TRUE(AnswerIsProven(answer, kToken, kClientQp, kServerQp));
  EXPECT_FALSE(AnswerIsProven(answer, "another", kClientQp, kServerQp));
  EXPECT_FALSE(AnswerIsProven(answer, kToken, kClientQp + 1, kServerQp));
  EXPECT_FALSE(AnswerIsProven(answer, kToken, kClientQp, kServerQp + 1));
  EXPECT_FALSE(AnswerIsProven(answer, kToken, kServerQp, kClientQp));
}

TEST(PrivateDataTest, RequestIsNoAnswer) {
  // Tests a listener that sends the request back, which proves nothing.
  const std::string request = SomeRequest();
  const std::string reflected = request.substr(0, kHeadBytes) +
                                request.substr(kHeadBytes + kTokenNameBytes);
  EXPECT_FALSE(AnswerIsProven(request, kToken, kClientQp, kServerQp));
  EXPECT_FALSE(AnswerIsProven(reflected, kToken, kClientQp, kServerQp));
}

}  // namespace
}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
