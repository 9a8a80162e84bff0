// Tests messages in the memory of a device that the peer cannot read.

#include <string>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "tests/transport/memory/fake_device_access.h"
#include "tests/transport/session/session_test_util.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace session {
namespace {

class DeviceMessages : public SessionTest {
 protected:
  // Sends a message whose bytes are on the device, except for its head.
  bool SendFromDevice(Peer* peer, uint32_t stream, const std::string& text) {
    memory::Payload message = ToPayload("head ");
    message.Append(device_.Put(text));
    return (*peer)->output().SendMessage(stream, std::move(message), false);
  }
  // Opens two calls. The second call must continue in every test.
  void OpenCalls() {
    Open();
    client_->Open(1);
    client_->Open(3);
    Run();
    (void)server_->stream(1).Take();
    (void)server_->stream(3).Take();
  }
  void FailCopies() {
    device_.FailCopies(absl::InternalError("illegal address"));
  }
  // Expects that the other call is not disturbed.
  void ExpectOtherCallGoesOn() {
    device_.FailCopies(absl::OkStatus());
    EXPECT_TRUE(SendFromDevice(&*client_, 3, "more"));
    Run();
    EXPECT_EQ(server_->stream(3).Take(), Lines{"message head more"});
  }

  memory::FakeDeviceAccess device_;
};

TEST_F(DeviceMessages, ArriveAsOthers) {
  OpenCalls();
  const std::string large = Letters(200 * 1000);
  EXPECT_TRUE(SendFromDevice(&*client_, 1, "small"));
  EXPECT_TRUE(SendFromDevice(&*client_, 1, large));
  EXPECT_TRUE(SendFromDevice(&*client_, 1, "last"));
  Run();
  EXPECT_EQ(server_->stream(1).Take(),
            (Lines{"message head small", MessageLine("head " + large),
                   "message head last"}));
}

TEST_F(DeviceMessages, ThatCannotBeReadEndTheStreamOnBothSides) {
  OpenCalls();
  FailCopies();
  SendFromDevice(&*client_, 1, "small");
  Run();
  EXPECT_EQ(server_->stream(1).Take(),
            Lines{"reset INTERNAL: illegal address, by the peer"});
  EXPECT_EQ(client_->stream(1).Take(),
            Lines{"reset INTERNAL: illegal address"});
  ExpectOtherCallGoesOn();
}

TEST_F(DeviceMessages, ThatWaitedAndCannotBeReadEndTheStreamOnBothSides) {
  server_config_.stream_window = 300;
  OpenCalls();
  EXPECT_TRUE(client_->Send(1, Letters(300)));
  EXPECT_FALSE(SendFromDevice(&*client_, 1, "waits"));
  EXPECT_FALSE(client_->Send(1, "behind it"));
  FailCopies();
  Run();
  (*server_)->input().Consumed(1);
  Run();
  EXPECT_EQ(server_->stream(1).Take(),
            (Lines{MessageLine(Letters(300)),
                   "reset INTERNAL: illegal address, by the peer"}));
  EXPECT_EQ(client_->stream(1).Take(),
            Lines{"reset INTERNAL: illegal address"});
  ExpectOtherCallGoesOn();
}

// Tests many streams that wait for another stream. A recursive call for each
// would overflow the stack.
TEST_F(DeviceMessages, ManyThatWaitForAStreamEndOneByOne) {
  server_config_.max_streams = 1;
  Open();
  client_->Open(1);
  Run();
  const memory::Bytes bytes = device_.Put(Letters(1000));
  constexpr uint32_t kMany = 60000;
  for (uint32_t i = 0; i < kMany; ++i) {
    client_->Open(3 + 2 * i);
    (void)(*client_)->output().SendMessage(3 + 2 * i, memory::Payload(bytes),
                                           false);
  }
  FailCopies();
  (*client_)->output().SendReset(1, absl::CancelledError("x"));
  (*client_)->streams().Detach(1);
  Run();  // the resets take more than one turn
  uint32_t ended = 0;
  for (uint32_t i = 0; i < kMany; ++i) {
    ended += client_->stream(3 + 2 * i).Take() ==
             Lines{"reset INTERNAL: illegal address"};
  }
  EXPECT_EQ(ended, kMany);
}

}  // namespace
}  // namespace session
}  // namespace penstock
