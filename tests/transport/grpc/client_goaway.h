// A fixture with a gRPC client whose servers are WirePeers.

#ifndef PENSTOCK_TESTS_TRANSPORT_GRPC_CLIENT_GOAWAY_H_
#define PENSTOCK_TESTS_TRANSPORT_GRPC_CLIENT_GOAWAY_H_

#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "gtest/gtest.h"
#include "penstock/penstock.h"
#include "tests/transport/grpc/wire_peer.h"
#include "transport/wire/frame.h"

namespace penstock {
namespace core {

constexpr std::chrono::seconds kPatience(10);

// A call by the client under test. A separate thread polls for the call,
// because a StateGate may block gRPC's threads.
class PendingCall {
 public:
  explicit PendingCall(const std::shared_ptr<grpc::Channel>& channel,
                       std::chrono::milliseconds timeout = kPatience)
      : stub_(channel) {
    const grpc::Slice request("request");
    context_.set_deadline(std::chrono::system_clock::now() + timeout);
    call_ = stub_.PrepareUnaryCall(&context_, "/s/m",
                                   grpc::ByteBuffer(&request, 1), &queue_);
    call_->StartCall();
    call_->Finish(&response_, &status_, this);
    thread_ = std::thread([this] {
      void* tag;
      bool ok;
      queue_.Next(&tag, &ok);
      promise_.set_value(status_);
    });
  }
  ~PendingCall() {
    Cancel();
    thread_.join();
    queue_.Shutdown();
  }
  void Cancel() { context_.TryCancel(); }
  bool EndsWithin(std::chrono::milliseconds time) {
    return ended_.wait_for(time) == std::future_status::ready;
  }
  grpc::Status Finish() { return ended_.get(); }

 private:
  grpc::ClientContext context_;
  grpc::GenericStub stub_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> call_;
  grpc::ByteBuffer response_;
  grpc::Status status_;
  std::promise<grpc::Status> promise_;
  std::future<grpc::Status> ended_ = promise_.get_future();
  std::thread thread_;
};

class ClientGoawayTest : public testing::Test {
 protected:
  void SetUp() override { channel_ = NewChannel(grpc::ChannelArguments()); }
  std::shared_ptr<grpc::Channel> NewChannel(grpc::ChannelArguments arguments) {
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(
        absl::StrCat("127.0.0.1:", listener_.port()),
        Credentials(grpc::InsecureChannelCredentials()), arguments);
  }
  // Makes a connection, and a call on this connection.
  void Begin(uint32_t max_streams = UINT32_MAX) {
    first_ = std::make_unique<PendingCall>(channel_);
    ASSERT_NO_FATAL_FAILURE(Accept(&server_, max_streams));
    ExpectCall(server_.get(), 1);
  }
  void Accept(std::unique_ptr<WirePeer>* server,
              uint32_t max_streams = UINT32_MAX) {
    *server = listener_.Accept();
    ASSERT_NE(*server, nullptr);
    ASSERT_TRUE((*server)->Serve(max_streams));
  }
  static void ExpectCall(WirePeer* server, uint32_t stream) {
    EXPECT_EQ(server->Next(), absl::StrCat("headers ", stream));
    EXPECT_EQ(server->Next(), absl::StrCat("last message ", stream));
  }
  static void Answer(WirePeer* server, uint32_t stream) {
    server->Send(
        wire::FrameType::kHeaders, stream, 0,
        Metadata({{":status", "200"}, {"content-type", "application/grpc"}}));
    server->Send(wire::FrameType::kMessage, stream);
    server->Send(wire::FrameType::kTrailers, stream, 0,
                 Metadata({{"grpc-status", "0"}}));
  }
  static void Goaway(WirePeer* server, uint32_t last) {
    server->Send(wire::FrameType::kGoaway, last, 14, "bye");
  }

  WireListener listener_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<WirePeer> server_;
  std::unique_ptr<PendingCall> first_;
};

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_GRPC_CLIENT_GOAWAY_H_
