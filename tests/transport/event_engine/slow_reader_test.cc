// Tests readers that leave their messages unread, over both paths.

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "tests/transport/event_engine/echo.h"

namespace penstock {
namespace event_engine {
namespace {

constexpr int kMessages = 200;
constexpr size_t kBytes = 1 << 20;
// Limits the messages that wait in gRPC and Penstock while the reader does not
// read. gRPC's fixed windows of 64 KiB let one message of each direction
// through.
constexpr int kMostUnread = 4;

std::string MessageOf(int number) {
  std::string message(kBytes, static_cast<char>(number));
  for (size_t i = 0; i < kBytes; i += 4099) {
    message[i] = static_cast<char>(i * 31 + number);
  }
  return message;
}

std::string TextOf(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  (void)buffer.Dump(&slices);
  std::string text;
  for (const grpc::Slice& slice : slices) {
    text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return text;
}

// Sends all messages as fast as gRPC takes them. Reads an echo only in Read().
class Sender final
    : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  explicit Sender(const std::shared_ptr<grpc::Channel>& channel)
      : stub_(channel) {
    stub_.PrepareBidiStreamingCall(&context_, "/test/Echo", {}, this);
    WriteNext();
    StartCall();
  }

  int written() const { return written_; }

  // Blocks until the next echo. Call it once for each message.
  std::string Read() {
    {
      absl::MutexLock lock(&mu_);
      has_read_ = false;
    }
    StartRead(&echo_);
    absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(&has_read_));
    return ok_ ? TextOf(echo_) : "";
  }

  grpc::Status AwaitEnd() {
    absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(&is_done_));
    return status_;
  }

 private:
  void WriteNext() {
    const std::string text = MessageOf(written_);
    const grpc::Slice slice(text);
    message_ = grpc::ByteBuffer(&slice, 1);
    StartWrite(&message_);
  }
  void OnWriteDone(bool ok) override {
    if (!ok) return;
    if (++written_ == kMessages) return StartWritesDone();
    WriteNext();
  }
  void OnReadDone(bool ok) override {
    absl::MutexLock lock(&mu_);
    ok_ = ok;
    has_read_ = true;
  }
  void OnDone(const grpc::Status& status) override {
    absl::MutexLock lock(&mu_);
    status_ = status;
    is_done_ = true;
  }

  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::ByteBuffer message_;
  grpc::ByteBuffer echo_;
  std::atomic<int> written_{0};
  absl::Mutex mu_;
  bool has_read_ = false;
  bool ok_ = false;
  bool is_done_ = false;
  grpc::Status status_;
};

// Waits until the sender is blocked. Returns the number of messages sent.
int AwaitBlocked(const Sender& sender) {
  constexpr absl::Duration kBlocked = absl::Milliseconds(300);
  int seen = -1;
  absl::Time since = absl::Now();
  while (sender.written() < kMessages && absl::Now() - since < kBlocked) {
    if (sender.written() != seen) since = absl::Now();
    seen = sender.written();
    absl::SleepFor(absl::Milliseconds(5));
  }
  return sender.written();
}

// The tests run with stock gRPC as well, which has the same limits.
class SlowReaderTest : public testing::TestWithParam<std::string> {
 protected:
  static Options OptionsOfParam() {
    if (GetParam() == "Stock") return kStock;
    Options options = kPenstock;
    if (GetParam() == "Tcp") options.fabrics = {Fabric::kTcp};
    return options;
  }
};

// Tests that a slow reader stops its sender, but no other call on the same
// connection.
TEST_P(SlowReaderTest, StopsOnlyItsSender) {
  EchoServer server(OptionsOfParam(), grpc::InsecureServerCredentials(),
                    /*port=*/0, "127.0.0.1", Windows::kFixed);
  const auto channel =
      NewChannel(server.target(), OptionsOfParam(),
                 grpc::InsecureChannelCredentials(), Windows::kFixed);
  ASSERT_TRUE(channel->WaitForConnected(std::chrono::system_clock::now() +
                                        std::chrono::minutes(1)));
  if (GetParam() == "Shm") ASSERT_TRUE(ReachesShm(channel, server.target()));
  Sender sender(channel);
  const int sent = AwaitBlocked(sender);
  EXPECT_GT(sent, 0);
  EXPECT_LE(sent, kMostUnread);
  for (int i = 0; i < 20; ++i) {
    const grpc::Status status = Echo(channel, std::string(1000, 'x'));
    ASSERT_TRUE(status.ok()) << i << ": " << status.error_message();
  }
  EXPECT_LE(sender.written(), kMostUnread);
  for (int i = 0; i < kMessages; ++i) {
    ASSERT_TRUE(sender.Read() == MessageOf(i)) << i;
    if (i % 50 == 0) absl::SleepFor(absl::Milliseconds(20));
  }
  EXPECT_TRUE(sender.AwaitEnd().ok());
}

INSTANTIATE_TEST_SUITE_P(Paths, SlowReaderTest,
                         testing::Values("Shm", "Tcp", "Stock"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace event_engine
}  // namespace penstock
