// Tests calls of gRPC's client frame by frame, where the order of events
// matters. The reference is gRPC's HTTP/2 transport (chttp2_transport.cc).

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "gtest/gtest.h"
#include "penstock/penstock.h"
#include "tests/transport/grpc/wire_peer.h"
#include "transport/wire/announce.h"
#include "transport/wire/frame.h"

namespace penstock {
namespace core {
namespace {

using wire::FrameType;

constexpr std::chrono::seconds kPatience(10);
constexpr int kMaxReceiveBytes = 100 * 1000;

// A streaming call, step by step. A separate thread polls, so that frames are
// also read between steps.
class SteppedCall {
 public:
  explicit SteppedCall(const std::shared_ptr<grpc::Channel>& channel)
      : stub_(channel), poller_([this] { Poll(); }) {
    context_.set_deadline(std::chrono::system_clock::now() + kPatience);
    stream_ = stub_.PrepareCall(&context_, "/s/m", &queue_);
    stream_->StartCall(&start_);
  }
  ~SteppedCall() {
    context_.TryCancel();
    queue_.Shutdown();
    poller_.join();
  }
  // Waits until the headers have been sent.
  bool AwaitStart() { return start_.get_future().get(); }
  absl::optional<std::string> Read() {
    grpc::ByteBuffer message;
    Step read;
    stream_->Read(&message, &read);
    if (!read.get_future().get()) return absl::nullopt;
    grpc::Slice slice;
    EXPECT_TRUE(message.DumpToSingleSlice(&slice).ok());
    return std::string(slice.begin(), slice.end());
  }
  void BeginFinish() { stream_->Finish(&status_, &finish_); }
  grpc::Status AwaitFinish() {
    EXPECT_TRUE(finish_.get_future().get());
    return status_;
  }
  void Cancel() { context_.TryCancel(); }

 private:
  using Step = std::promise<bool>;

  void Poll() {
    void* step = nullptr;
    bool ok = false;
    while (queue_.Next(&step, &ok)) static_cast<Step*>(step)->set_value(ok);
  }

  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  grpc::Status status_;
  Step start_, finish_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
  std::thread poller_;
};

class StreamTest : public testing::Test {
 protected:
  void SetUp() override {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetMaxReceiveMessageSize(kMaxReceiveBytes);
    channel_ = grpc::CreateCustomChannel(
        absl::StrCat("127.0.0.1:", listener_.port()),
        Credentials(grpc::InsecureChannelCredentials()), arguments);
    call_ = std::make_unique<SteppedCall>(channel_);
    server_ = listener_.Accept();
    ASSERT_NE(server_, nullptr);
    ASSERT_TRUE(server_->Serve());
    ASSERT_TRUE(call_->AwaitStart());
    ASSERT_EQ(server_->Next(), "headers 1");
  }
  void SendHeaders() {
    server_->Send(
        FrameType::kHeaders, 1, 0,
        Metadata({{":status", "200"}, {"content-type", "application/grpc"}}));
  }
  void SendMessage(absl::string_view bytes) {
    server_->Send(FrameType::kMessage, 1, 0, bytes);
  }
  void AnnounceMessage(uint64_t bytes) {
    wire::Announce announce;
    announce.id = 1;
    announce.length = bytes;
    announce.regions.push_back({0, {{7, 0, announce.length}}});
    server_->Send(FrameType::kAnnounce, 1, 0,
                  wire::EncodeAnnounce(announce, wire::kVersion));
  }
  void SendTrailers(const std::string& status, const std::string& text) {
    server_->Send(FrameType::kTrailers, 1, 0,
                  Metadata({{"grpc-status", status}, {"grpc-message", text}}));
  }
  // Returns metadata that is 50 bytes smaller than 8 KiB. Counts like HTTP/2,
  // with 32 bytes for each entry.
  static std::string AlmostTooMuch() {
    return Metadata(
        {{"grpc-status", "5"}, {"x", std::string(8192 - 50 - 44 - 33, 'x')}});
  }
  // Waits until the client has read all frames.
  void AwaitClient() {
    server_->Send(FrameType::kPing, 0, 0, std::string(8, '\x01'));
    std::string next = server_->Next();
    while (next != "pong" && next != "closed") next = server_->Next();
    ASSERT_EQ(next, "pong");
  }

  WireListener listener_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<WirePeer> server_;
  std::unique_ptr<SteppedCall> call_;
};

TEST_F(StreamTest, OkIsNotTheStatusOfACallThatWasCancelledBeforeItsEnd) {
  SendHeaders();
  for (const char* message : {"a", "b", "c"}) SendMessage(message);
  SendTrailers("0", "");
  EXPECT_EQ(call_->Read(), "a");
  AwaitClient();
  call_->BeginFinish();  // waits behind "b"
  call_->Cancel();
  EXPECT_EQ(call_->AwaitFinish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(StreamTest, StatusThatACancellationReplacesLeavesNoTextOfItsOwn) {
  SendHeaders();
  SendMessage("a");
  SendTrailers("13", "100%25 broken");
  AwaitClient();
  call_->BeginFinish();
  call_->Cancel();
  const grpc::Status status = call_->AwaitFinish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_EQ(status.error_message().find("broken"), std::string::npos)
      << status.error_message();
}

TEST_F(StreamTest, MessagesBeforeOneThatIsTooLargeAreRead) {
  SendHeaders();
  SendMessage("a");
  SendMessage("b");
  AnnounceMessage(kMaxReceiveBytes + 1);
  AwaitClient();
  EXPECT_EQ(call_->Read(), "a");
  EXPECT_EQ(call_->Read(), "b");
  EXPECT_EQ(call_->Read(), absl::nullopt);
  call_->BeginFinish();
  const grpc::Status status = call_->AwaitFinish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(status.error_message(),
            "Received message larger than max (100001 vs. 100000)");
}

TEST_F(StreamTest, OkIsNotTheStatusOfACallWithAMessageThatIsTooLarge) {
  SendHeaders();
  AnnounceMessage(kMaxReceiveBytes + 1);
  SendTrailers("0", "");
  AwaitClient();
  call_->BeginFinish();
  EXPECT_EQ(call_->Read(), absl::nullopt);
  EXPECT_EQ(call_->AwaitFinish().error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(StreamTest, MessagesThatCameBeforeTheConnectionWasLostAreRead) {
  SendHeaders();
  SendMessage("a");
  SendMessage("b");
  EXPECT_EQ(call_->Read(), "a");
  AwaitClient();
  server_ = nullptr;
  while (channel_->GetState(false) == GRPC_CHANNEL_READY) {
    ASSERT_TRUE(channel_->WaitForStateChange(
        GRPC_CHANNEL_READY, std::chrono::system_clock::now() + kPatience));
  }
  EXPECT_EQ(call_->Read(), "b");
  EXPECT_EQ(call_->Read(), absl::nullopt);
  call_->BeginFinish();
  EXPECT_EQ(call_->AwaitFinish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

// Regression test: trailers without a status must not end the process, as
// libgrpc would.
TEST_F(StreamTest, TrailersWithoutAStatusAreOneOfUnknown) {
  server_->Send(FrameType::kTrailers, 1);
  call_->BeginFinish();
  EXPECT_EQ(call_->AwaitFinish().error_code(), grpc::StatusCode::UNKNOWN);
}

// Regression test: headers with a malformed second half must not end the
// process. libgrpc ends it if the first half was delivered.
TEST_F(StreamTest, HeadersThatAreHalfGoodEndTheCall) {
  server_->Send(FrameType::kHeaders, 1, 0,
                Metadata({{"good", "x"}, {"Not good", "x"}}));
  call_->BeginFinish();
  EXPECT_EQ(call_->AwaitFinish().error_code(), grpc::StatusCode::INTERNAL);
}

// Tests an answer that consists of trailers only. In HTTP/2, such an answer has
// 102 bytes more than trailers after headers, and so exceeds gRPC's 8 KiB.
TEST_F(StreamTest, AnswerOfTrailersAloneAboveTheLimitIsTooMuch) {
  server_->Send(FrameType::kTrailers, 1, 0, AlmostTooMuch());
  call_->BeginFinish();
  EXPECT_EQ(call_->AwaitFinish().error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(StreamTest, TrailersUpToTheLimitAreTaken) {
  SendHeaders();
  server_->Send(FrameType::kTrailers, 1, 0, AlmostTooMuch());
  call_->BeginFinish();
  EXPECT_EQ(call_->AwaitFinish().error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(StreamTest, MetadataAboveTheLimitThatHadToWaitIsStillTooMuch) {
  SendHeaders();
  AnnounceMessage(1000);  // the read begins, and no byte comes
  server_->Send(
      FrameType::kTrailers, 1, 0,
      Metadata({{"grpc-status", "0"}, {"x", std::string(9000, 'x')}}));
  AwaitClient();
  constexpr uint8_t kReadData = 4;
  server_->SendUnit(kReadData, /*cookie=*/1, std::string(1000, 'm'));
  AwaitClient();
  call_->BeginFinish();
  EXPECT_EQ(call_->AwaitFinish().error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(StreamTest, MessageBeforeTheHeadersEndsTheCall) {
  SendMessage("a");
  AwaitClient();
  EXPECT_EQ(call_->Read(), absl::nullopt);
  call_->BeginFinish();
  EXPECT_EQ(call_->AwaitFinish().error_code(), grpc::StatusCode::INTERNAL);
}

TEST_F(StreamTest, ReadOfWhatIsNotThereEndsTheCallAsALostConnectionWould) {
  SendHeaders();
  AnnounceMessage(1000);
  AwaitClient();
  constexpr uint8_t kReadError = 5;
  server_->SendUnit(kReadError, /*cookie=*/1);
  const absl::optional<std::string> message = call_->Read();
  EXPECT_EQ(message, absl::nullopt);
  call_->BeginFinish();
  EXPECT_EQ(call_->AwaitFinish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace core
}  // namespace penstock
