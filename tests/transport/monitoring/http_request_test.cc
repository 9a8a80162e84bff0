#include "transport/monitoring/http_request.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace penstock {
namespace monitoring {
namespace {

constexpr char kRequest[] =
    "GET /metrics?a=b HTTP/1.1\r\nHost: ps0\r\nAccept: */*\r\n\r\n";

TEST(HttpRequest, IsTakenWhenItsHeadIsComplete) {
  const std::string all = kRequest;
  for (size_t size = 0; size < all.size(); ++size) {
    const auto request = ParseHttpRequest(all.substr(0, size));
    ASSERT_TRUE(request.ok()) << size << request.status();
    EXPECT_FALSE(request->has_value()) << size;
  }
  for (const char* behind : {"", "GET / HTTP/1.1\r\n\r\n"}) {
    const auto request = ParseHttpRequest(all + behind);
    ASSERT_TRUE(request.ok() && request->has_value());
    EXPECT_EQ((*request)->method, "GET");
    EXPECT_EQ((*request)->path, "/metrics");
  }
}

TEST(HttpRequest, OtherProtocolsAreKnownByTheirFirstBytes) {
  for (const std::string bytes : {"\x16\x03\x01", "PSTKrpc?", "get / HTTP/1.1",
                                  "\r\n", "G3", "AAAAAAAAAAAAAAAAAAAAAAAA"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseHttpRequest(bytes).status()))
        << bytes;
  }
}

TEST(HttpRequest, BadLinesAreMalformed) {
  for (const std::string line :
       {"GET", "GET /metrics", "GET  /metrics HTTP/1.1", "GET /a b HTTP/1.1",
        "GET /metrics HTTP/2.0", "GET /metrics SSH-2.0", " / HTTP/1.1"}) {
    EXPECT_TRUE(
        absl::IsInvalidArgument(ParseHttpRequest(line + "\r\n\r\n").status()))
        << line;
  }
}

// Tests whole URLs as targets. Some proxies send whole URLs, and RFC 9112
// requires servers to accept them.
TEST(HttpRequest, TargetMayBeAWholeUrl) {
  const std::pair<std::string, std::string> kPaths[] = {
      {"http://ps0:9464/metrics?a=b", "/metrics"},
      {"HTTP://ps0/metrics", "/metrics"},
      {"http://ps0", ""},
      {"http://ps0?/metrics", ""},
      {"http://", ""},
      {"/http://ps0/metrics", "/http://ps0/metrics"},
      {"/?http://ps0/metrics", "/"},
      {"?http://ps0/metrics", ""},
      {"*", "*"}};
  for (const auto& [target, path] : kPaths) {
    const auto request =
        ParseHttpRequest(absl::StrCat("GET ", target, " HTTP/1.1\r\n\r\n"));
    ASSERT_TRUE(request.ok() && request->has_value()) << target;
    EXPECT_EQ((*request)->path, path) << target;
  }
}

TEST(HttpRequest, HeadsAreBounded) {
  const std::string line = "GET /metrics HTTP/1.1\r\n";
  const std::string field(kMaxHeadBytes - line.size() - 4, 'a');
  const auto longest = ParseHttpRequest(line + field + "\r\n\r\n");
  ASSERT_TRUE(longest.ok());
  EXPECT_TRUE(longest->has_value());
  EXPECT_TRUE(absl::IsInvalidArgument(
      ParseHttpRequest(line + field + "a\r\n\r\n").status()));
  EXPECT_TRUE(ParseHttpRequest(line + field).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(
      ParseHttpRequest(line + field + "aaaa").status()));
}

TEST(HttpAnswer, SaysHowManyBytesFollow) {
  EXPECT_EQ(EncodeHttpAnswer("404 Not Found", "text/plain", 7),
            "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\n"
            "Content-Length: 7\r\nConnection: close\r\n\r\n");
}

}  // namespace
}  // namespace monitoring
}  // namespace penstock
