// Tests that messages of all sizes arrive unchanged, and that messages above
// the limit are refused as by stock gRPC.

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/e2e/raw.h"
#include "tests/e2e/stack_test.h"

namespace penstock::e2e {
namespace {

constexpr size_t kKi = 1024;
constexpr size_t kMi = 1024 * kKi;
constexpr int kNoLimit = -1;

// Sizes around the transport's thresholds: 8 KiB (shm) and 48 KiB (tcp) are the
// largest messages in one frame, and 64 KiB and 256 KiB are buffer sizes.
constexpr size_t kSizes[] = {0,
                             1,
                             8 * kKi - 1,
                             8 * kKi,
                             8 * kKi + 1,
                             48 * kKi - 1,
                             48 * kKi,
                             48 * kKi + 1,
                             64 * kKi - 1,
                             64 * kKi,
                             64 * kKi + 1,
                             256 * kKi - 1,
                             256 * kKi,
                             256 * kKi + 1,
                             kMi,
                             4 * kMi};

class MessageSizeTest : public StackTest {
 protected:
  void ServeEcho(int max_receive = kNoLimit) {
    Serve(nullptr, [this, max_receive](grpc::ServerBuilder* builder) {
      builder->RegisterCallbackGenericService(&service_);
      builder->SetMaxReceiveMessageSize(max_receive);
    });
  }

  // Stops the server before its service is destroyed.
  ~MessageSizeTest() override { StopServing(std::chrono::milliseconds(0)); }

  static void ExpectEchoed(RawStream* stream, const std::string& bytes) {
    ASSERT_TRUE(stream->Write(bytes));
    auto echoed = stream->Read();
    ASSERT_TRUE(echoed.has_value());
    // Compares by ==, because EXPECT_EQ would print megabytes.
    EXPECT_TRUE(*echoed == bytes) << "other bytes";
  }

  static void ExpectEndsWell(RawStream* stream) {
    EXPECT_TRUE(stream->WritesDone());
    EXPECT_EQ(stream->Read(), absl::nullopt);
    const grpc::Status status = stream->Finish();
    EXPECT_TRUE(status.ok()) << status.error_message();
  }

  RawEchoService service_;
};

TEST_P(MessageSizeTest, EachSizeComesWholeInACallOfItsOwn) {
  ServeEcho();
  for (size_t size : kSizes) {
    SCOPED_TRACE(absl::StrCat(size, " bytes"));
    Call call;
    RawStream stream(channel(), &call);
    ExpectEchoed(&stream, Pattern(size));
    ExpectEndsWell(&stream);
  }
  ExpectTraffic(std::size(kSizes), std::size(kSizes));
}

TEST_P(MessageSizeTest, SizesMayMixInOneCall) {
  ServeEcho();
  Call call;
  RawStream stream(channel(), &call);
  unsigned seed = 0;
  for (int round = 0; round < 3; ++round) {
    for (size_t size : kSizes) {
      SCOPED_TRACE(absl::StrCat(size, " bytes, round ", round));
      ExpectEchoed(&stream, Pattern(size, ++seed));
    }
  }
  ExpectEndsWell(&stream);
  ExpectTraffic(seed, seed);
}

// Tests a client that sends all messages before it reads any. The messages fit
// the server's flow control.
TEST_P(MessageSizeTest, MessagesWaitForTheirReaderInOrder) {
  ServeEcho();
  Call call;
  RawStream stream(channel(), &call);
  constexpr size_t kBurst[] = {1, 100 * kKi, 0, 48 * kKi, 7, 64 * kKi + 1, 2};
  unsigned seed = 0;
  for (size_t size : kBurst) ASSERT_TRUE(stream.Write(Pattern(size, ++seed)));
  EXPECT_TRUE(stream.WritesDone());
  seed = 0;
  for (size_t size : kBurst) {
    EXPECT_TRUE(stream.Read() == Pattern(size, ++seed)) << size;
  }
  EXPECT_EQ(stream.Read(), absl::nullopt);
  EXPECT_TRUE(stream.Finish().ok());
  ExpectTraffic(seed, seed);
}

TEST_P(MessageSizeTest, SixteenMebibytesGoWhereTheLimitsAreRaised) {
  ServeEcho();
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(16 * kMi);
  auto channel = NewChannel(arguments);
  Call call;
  RawStream stream(channel, &call);
  ExpectEchoed(&stream, Pattern(16 * kMi));
  ExpectEndsWell(&stream);
  ExpectTraffic(*channel, 1, 1);
}

INSTANTIATE_TEST_SUITE_P(Over, MessageSizeTest, EachPath(), PathName());

// Limits of each side, in bytes. Unset limits are gRPC's defaults.
struct Limits {
  int server_receives = 4 << 20;
  int server_sends = kNoLimit;
  int client_receives = 4 << 20;
  int client_sends = kNoLimit;
};

constexpr char kStockCancels[] =
    "stock gRPC 1.83 may end such a call with CANCELLED";

class MessageLimitTest : public testing::TestWithParam<Path> {
 protected:
  // Returns the status of an echo of `bytes`. Expects a working connection
  // afterwards.
  static grpc::Status Echo(Path path, size_t bytes, const Limits& limits) {
    RawEchoService service;
    Stack stack(path);
    stack.Serve(nullptr, [&](grpc::ServerBuilder* builder) {
      builder->RegisterCallbackGenericService(&service);
      builder->SetMaxReceiveMessageSize(limits.server_receives);
      builder->SetMaxSendMessageSize(limits.server_sends);
    });
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(limits.client_receives);
    arguments.SetMaxSendMessageSize(limits.client_sends);
    auto channel = stack.NewChannel(arguments);
    const grpc::Status status = EchoOnce(channel, bytes);
    EXPECT_TRUE(EchoOnce(channel, 10).ok());
    stack.ExpectPath(*channel);
    stack.StopServing(std::chrono::milliseconds(0));
    return status;
  }

  static grpc::Status EchoOnce(const std::shared_ptr<grpc::Channel>& channel,
                               size_t bytes) {
    Call call;
    RawStream stream(channel, &call);
    if (stream.Write(Pattern(bytes))) {
      stream.Read();
      stream.WritesDone();
    }
    return stream.Finish();
  }

  // Expects that a message of the limit's size is accepted, and that a message
  // with one more byte is refused, both as in stock gRPC.
  static void ExpectLimit(size_t bytes, const Limits& limits) {
    EXPECT_TRUE(Echo(GetParam(), bytes, limits).ok());
    const grpc::Status stock = Echo(Path::kStock, bytes + 1, limits);
    const grpc::Status status = Echo(GetParam(), bytes + 1, limits);
    EXPECT_EQ(stock.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_EQ(status.error_code(), stock.error_code());
    EXPECT_EQ(status.error_message(), stock.error_message());
  }
};

TEST_P(MessageLimitTest, ServerReceivesFourMebibytesAndNoMore) {
  ExpectLimit(4 << 20, Limits());
}

TEST_P(MessageLimitTest, ServerReceivesAsMuchAsItSays) {
  Limits limits;
  for (int limit : {100, 8192, 49152, 100000}) {
    limits.server_receives = limit;
    ExpectLimit(limit, limits);
  }
}

TEST_P(MessageLimitTest, ServerSendsAsMuchAsItSays) {
  Limits limits;
  limits.server_sends = 60000;
  ExpectLimit(60000, limits);
}

TEST_P(MessageLimitTest, ClientReceivesFourMebibytesAndNoMore) {
  if (kIsEventEngine) GTEST_SKIP() << kStockCancels;
  Limits limits;
  limits.server_receives = kNoLimit;
  ExpectLimit(4 << 20, limits);
}

TEST_P(MessageLimitTest, ClientReceivesAsMuchAsItSays) {
  if (kIsEventEngine) GTEST_SKIP() << kStockCancels;
  Limits limits;
  for (int limit : {100, 8192, 49152, 100000}) {
    limits.client_receives = limit;
    ExpectLimit(limit, limits);
  }
}

TEST_P(MessageLimitTest, ClientSendsAsMuchAsItSays) {
  Limits limits;
  limits.client_sends = 60000;
  ExpectLimit(60000, limits);
}

INSTANTIATE_TEST_SUITE_P(Over, MessageLimitTest, EachPath(), PathName());

}  // namespace
}  // namespace penstock::e2e
