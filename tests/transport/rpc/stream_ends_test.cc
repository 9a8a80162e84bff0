// Tests streams that end early.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "tests/transport/rpc/stream_fixture.h"
#include "transport/base/unique_fd.h"

namespace penstock {
namespace rpc {
namespace {

using StreamEndsTest = StreamFixture;

TEST_P(StreamEndsTest, CancelReachesTheHandler) {
  ServeNothing();
  std::unique_ptr<Client> client = Connect();
  Opened opened = Open(client.get(), Named("any"));
  const Incoming incoming = *incoming_.Get();
  const Awaited<bool> cancelled;
  incoming->OnCancel([cancelled] { cancelled.Set(true); });
  opened.stream = nullptr;  // cancels
  EXPECT_EQ(opened.EndCode(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(cancelled.Get().has_value());
  EXPECT_EQ(Read(incoming.get()), "no message");
  const Awaited<bool> accepted;
  incoming->Write(Text("x"), [accepted](bool is) { accepted.Set(is); });
  EXPECT_EQ(accepted.Get(), absl::make_optional(false));
  incoming->Finish({absl::OkStatus(), ""});
  EXPECT_EQ(opened.end.count(), 1);
}

TEST_P(StreamEndsTest, DeadlineEndsTheStream) {
  ServeNothing();
  std::unique_ptr<Client> client = Connect();
  Request request = Named("any");
  request.timeout = absl::Milliseconds(100);
  const Opened opened = Open(client.get(), std::move(request));
  EXPECT_EQ(opened.Read(), "no message");
  EXPECT_EQ(opened.EndCode(), absl::StatusCode::kDeadlineExceeded);
}

// Tests streams that end before they are sent.
TEST_P(StreamEndsTest, StreamsEndBeforeThereIsAConnection) {
  const base::UniqueFd silent(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(bind(silent.get(), generic, length), 0);
  ASSERT_EQ(listen(silent.get(), 10), 0);
  ASSERT_EQ(getsockname(silent.get(), generic, &length), 0);
  Client::Options options;
  options.target = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
  std::unique_ptr<Client> client = Connect(options);
  Request request = Named("any");
  request.timeout = absl::Milliseconds(20);
  const Opened late = Open(client.get(), std::move(request));
  late.Write("x");
  EXPECT_EQ(late.Read(), "no message");
  EXPECT_EQ(late.accepted.Get(), absl::make_optional(false));
  EXPECT_EQ(late.EndCode(), absl::StatusCode::kDeadlineExceeded);
  Opened dropped = Open(client.get(), Named("any"));
  dropped.stream = nullptr;
  EXPECT_EQ(dropped.EndCode(), absl::StatusCode::kCancelled);
  const Opened last = Open(client.get(), Named("any"));
  client = nullptr;
  EXPECT_EQ(last.Read(), "no message");
  EXPECT_EQ(last.EndCode(), absl::StatusCode::kCancelled);
}

// Tests callbacks that hold the owner of the stream, as they often do.
TEST_P(StreamEndsTest, StreamThatWasNeverSentHoldsNoCallback) {
  Client::Options options;
  options.target = "127.0.0.1:1";  // nobody listens
  std::unique_ptr<Client> client = Connect(options);
  const Awaited<bool> gone;
  std::shared_ptr<std::unique_ptr<OutgoingStream>> owner(
      new std::unique_ptr<OutgoingStream>(),
      [gone](std::unique_ptr<OutgoingStream>* stream) {
        delete stream;
        gone.Set(true);
      });
  *owner = client->Open(
      Named("any"), [owner](const std::string&) {}, [owner](const End&) {});
  owner = nullptr;
  EXPECT_TRUE(gone.Get().has_value());
}

// Tests that a cancel after the end changes nothing.
TEST_P(StreamEndsTest, LateCancelChangesNothing) {
  ServeStreams([](const Incoming& stream) {
    stream->Write(Text("answer"), nullptr);
    stream->Finish({absl::OkStatus(), ""});
    stream->Write(Text("late"), [](bool is) { EXPECT_FALSE(is); });
    stream->Finish({absl::AbortedError(""), "late"});
    stream->SendMetadata("late");
    stream->OnCancel([] { ADD_FAILURE() << "the stream had ended"; });
  });
  std::unique_ptr<Client> client = Connect();
  const Opened opened = Open(client.get(), Named("any"));
  EXPECT_TRUE(opened.end.Get()->status.ok());
  opened.stream->Cancel();
  opened.stream->HalfClose();
  opened.Write("late");
  EXPECT_EQ(opened.accepted.Get(), absl::make_optional(false));
  EXPECT_EQ(opened.Read(), "answer");
  EXPECT_EQ(opened.Read(), "no message");
  EXPECT_EQ(opened.end.count(), 1);
}

// Tests a handler that ends a stream without reading it. The client then frees
// the messages that it has not sent.
TEST_P(StreamEndsTest, EarlyEndFreesUnsentMessages) {
  ServeNothing();
  std::unique_ptr<Client> client = Connect();
  const Opened opened = Open(client.get(), Named("any"));
  Incoming incoming = *incoming_.Get();
  const Awaited<bool> gone;
  {
    const std::shared_ptr<const std::string> text(
        new std::string(65536, 'x'), [gone](const std::string* bytes) {
          delete bytes;
          gone.Set(true);
        });
    for (int i = 0; i < 4096; ++i) {
      opened.stream->Write(WithOwner(text), nullptr);
    }
  }
  EXPECT_EQ(gone.count(), 0);
  incoming = nullptr;  // without an end
  EXPECT_EQ(opened.EndCode(), absl::StatusCode::kInternal);
  EXPECT_TRUE(gone.Get().has_value());
  EXPECT_TRUE(Call(client.get(), Named("the next")).ok());
}

TEST_P(StreamEndsTest, TooLargeMessageEndsTheStream) {
  ServeNothing();
  std::unique_ptr<Client> client = Connect();
  const Opened opened = Open(client.get(), Named("any"));
  opened.Write(std::string((1 << 20) + 1, 'x'));
  EXPECT_EQ(opened.EndCode(), absl::StatusCode::kResourceExhausted);
}

// Tests limits that are smaller than the messages that are sent without an
// announcement.
TEST_P(StreamEndsTest, SmallLimitsHold) {
  ServeStreams(Echo);
  Client::Options options = ClientOptions();
  options.max_receive_bytes = 4;
  std::unique_ptr<Client> client = Connect(options);
  const Opened opened = Open(client.get(), Named("echo"));
  opened.Write("four");
  EXPECT_EQ(opened.Read(), "four");
  opened.Write("fives");
  EXPECT_EQ(opened.Read(), "no message");
  EXPECT_EQ(opened.EndCode(), absl::StatusCode::kResourceExhausted);
}

TEST_P(StreamEndsTest, MessagesBeforeOneThatIsTooLargeStayReadable) {
  ServeStreams([](const Incoming& stream) {
    for (const char* text : {"1", "2", "3", "large"}) {
      stream->Write(Text(text), [](bool) {});
    }
  });
  Client::Options options = ClientOptions();
  options.max_receive_bytes = 4;
  std::unique_ptr<Client> client = Connect(options);
  const Opened opened = Open(client.get(), Named("any"));
  EXPECT_EQ(opened.EndCode(), absl::StatusCode::kResourceExhausted);
  for (const char* text : {"1", "2", "3", "no message"}) {
    EXPECT_EQ(opened.Read(), text);
  }
}

TEST_P(StreamEndsTest, MetadataAboveTheLimitIsInternal) {
  ServeStreams([](const Incoming& stream) {
    if (stream->request().method == "first") {
      stream->SendMetadata(std::string(kMaxMetadataBytes + 1, 'x'));
    } else {
      stream->Finish(
          {absl::OkStatus(), std::string(kMaxTrailingBytes + 1, 'x')});
    }
  });
  std::unique_ptr<Client> client = Connect();
  for (const char* method : {"first", "last"}) {
    const Opened opened = Open(client.get(), Named(method));
    EXPECT_EQ(opened.EndCode(), absl::StatusCode::kInternal) << method;
  }
}

TEST_P(StreamEndsTest, ServerWithoutAStreamHandlerTakesNone) {
  ServeEcho();
  std::unique_ptr<Client> client = Connect();
  const Opened opened = Open(client.get(), Named("any"));
  EXPECT_EQ(opened.EndCode(), absl::StatusCode::kUnimplemented);
}

TEST_P(StreamEndsTest, InvalidRequestIsNotSent) {
  ServeNothing();
  std::unique_ptr<Client> client = Connect();
  Request request = Named("any");
  request.payload = Text("a message");
  EXPECT_EQ(Open(client.get(), std::move(request)).EndCode(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Open(client.get(), Named("")).EndCode(),
            absl::StatusCode::kInvalidArgument);
}

TEST_P(StreamEndsTest, LostConnectionEndsBothSides) {
  ServeNothing();
  std::unique_ptr<Client> client = Connect();
  const Opened opened = Open(client.get(), Named("any"));
  const Incoming incoming = *incoming_.Get();
  server_ = nullptr;
  EXPECT_EQ(opened.EndCode(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(opened.Read(), "no message");
  EXPECT_EQ(Read(incoming.get()), "no message");
  const Opened later = Open(client.get(), Named("later"));
  EXPECT_EQ(later.EndCode(), absl::StatusCode::kUnavailable);
}

TEST_P(StreamEndsTest, EarlyStepsAreReportedIfThereIsNoServer) {
  ServeNothing();
  const Client::Options options = ClientOptions();
  server_ = nullptr;
  std::unique_ptr<Client> client = Connect(options);
  const Opened opened = Open(client.get(), Named("any"));
  opened.Write("x");
  EXPECT_EQ(opened.Read(), "no message");
  EXPECT_EQ(opened.accepted.Get(), absl::make_optional(false));
  EXPECT_EQ(opened.EndCode(), absl::StatusCode::kUnavailable);
}

INSTANTIATE_TEST_SUITE_P(All, StreamEndsTest,
                         testing::Values(Fabric::kShm, Fabric::kTcp),
                         [](const auto& info) {
                           return FabricName(info.param);
                         });

}  // namespace
}  // namespace rpc
}  // namespace penstock
