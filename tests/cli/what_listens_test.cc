// Tests that a server is identified by the first bytes of its answer.

#include "cli/what_listens.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::cli {
namespace {

using testing::HasSubstr;

TEST(MeaningOfAnswerTest, Http2SaysNothing) {
  const std::string settings("\0\0\6\4\0\0\0\0\0\0\3\0\0\0\x64", 15);
  const std::string goaway("\0\0\x8\7\0\0\0\0\0", 9);
  for (const std::string& answer : {settings, goaway, std::string()}) {
    EXPECT_EQ(MeaningOfAnswer(answer, /*with_tls=*/false), "");
    EXPECT_EQ(MeaningOfAnswer(answer, /*with_tls=*/true), "");
  }
}

TEST(MeaningOfAnswerTest, TlsIsASurpriseToThoseWithoutIt) {
  const std::string alert("\x15\3\1\0\2\2\x46", 7);
  EXPECT_THAT(MeaningOfAnswer(alert, /*with_tls=*/false), HasSubstr("--tls"));
  EXPECT_EQ(MeaningOfAnswer(alert, /*with_tls=*/true), "");
}

TEST(MeaningOfAnswerTest, OthersAreQuotedByTheirFirstLine) {
  EXPECT_EQ(MeaningOfAnswer("SSH-2.0-x\r\nmore", true),
            "no gRPC server listens there, but a program that sends "
            "\"SSH-2.0-x\"; is it the right port?");
  const std::string endless = MeaningOfAnswer(std::string(5000, '\x1b'), false);
  EXPECT_LT(endless.size(), 200U);
  EXPECT_EQ(endless.find('\x1b'), std::string::npos);
}

TEST(WhatListensAtTest, WhoeverSaysNothingCostsTheLimit) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const native = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(bind(listener, native, size), 0);
  ASSERT_EQ(listen(listener, 1), 0);
  ASSERT_EQ(getsockname(listener, native, &size), 0);
  const std::string target =
      absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
  const absl::Time begin = absl::Now();
  EXPECT_EQ(WhatListensAt(target, absl::Milliseconds(200), false), "");
  EXPECT_GE(absl::Now() - begin, absl::Milliseconds(190));
  EXPECT_LT(absl::Now() - begin, absl::Seconds(10));
  close(listener);
}

TEST(WhatListensAtTest, TargetsThatLeadNowhereSayNothing) {
  for (const char* target :
       {"", ":", "unix:", "unix:/nonexistent", "ipv4:1.2.3.4", "dns:///",
        "no-such-name.invalid:1", "[::1", "127.0.0.1:1", "xds:x"}) {
    EXPECT_EQ(WhatListensAt(target, absl::Milliseconds(200), false), "")
        << target;
  }
}

}  // namespace
}  // namespace penstock::cli
