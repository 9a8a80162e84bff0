#include "transport/monitoring/receive_bytes.h"

#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <future>
#include <string>

#include "gtest/gtest.h"
#include "tests/transport/progress/lingering.h"
#include "transport/base/unique_fd.h"

namespace penstock {
namespace monitoring {
namespace {

class ReceiveBytesTest : public testing::Test {
 protected:
  ReceiveBytesTest() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    ours_.Reset(ends[0]);
    theirs_.Reset(ends[1]);
  }

  void Send(const std::string& bytes) {
    ASSERT_EQ(send(theirs_.get(), bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
  }
  // Returns the bytes, or "error".
  std::string Receive(size_t size = 64) {
    std::string bytes(size, '\0');
    const ssize_t got = ReceiveBytes(ours_.get(), &bytes[0], size);
    if (got < 0) return "error";
    bytes.resize(static_cast<size_t>(got));
    return bytes;
  }

  base::UniqueFd ours_;
  base::UniqueFd theirs_;
};

TEST_F(ReceiveBytesTest, TakesBytesAsTheyCome) {
  EXPECT_EQ(Receive(), "error");
  EXPECT_EQ(errno, EAGAIN);
  Send("one");
  Send(" two");
  EXPECT_EQ(Receive(2), "on");
  EXPECT_EQ(Receive(), "e two");
  theirs_.Reset();
  EXPECT_EQ(Receive(), "");
}

TEST_F(ReceiveBytesTest, LeavesDescriptorsInTheSocket) {
  Lingering lingering;
  SendWith(theirs_.get(), "x", {lingering.fd()});
  lingering.LetGo();
  auto received = std::async(std::launch::async, [this] {
    std::string result = Receive();
    return result + (errno == EPROTO ? " EPROTO" : "");
  });
  ASSERT_EQ(received.wait_for(std::chrono::seconds(20)),
            std::future_status::ready)
      << "it waits for a stranger";
  EXPECT_EQ(received.get(), "error EPROTO");
  EXPECT_EQ(Receive(), "error");
}

TEST_F(ReceiveBytesTest, WhatComesBehindBytesIsNotClosedEither) {
  Lingering lingering;
  Send("question");
  SendWith(theirs_.get(), "x", {lingering.fd()});
  lingering.LetGo();
  auto received = std::async(std::launch::async, [this] {
    std::string all;
    for (std::string step = Receive(3); step != "error"; step = Receive(3)) {
      all += step;
    }
    return all;
  });
  ASSERT_EQ(received.wait_for(std::chrono::seconds(20)),
            std::future_status::ready);
  // Accepts any beginning of the bytes. Kernels differ in how many bytes they
  // return before descriptors.
  const std::string all = received.get();
  EXPECT_EQ(all, std::string("question").substr(0, all.size()));
}

}  // namespace
}  // namespace monitoring
}  // namespace penstock
