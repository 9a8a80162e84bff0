// Tests that a thread which holds the lock of one connection does not hold up
// the others. Such a thread may have lost its core to the handlers of a client
// with many large calls.

#include "tests/transport/grpc/locked_connection.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "penstock/penstock.h"
#include "tests/transport/grpc/wire_peer.h"
#include "transport/wire/frame.h"

namespace penstock {
namespace core {
namespace {

using wire::FrameType;

// Finishes all calls. One thread polls for all connections.
class OneThreadServer {
 public:
  OneThreadServer() {
    grpc::ServerBuilder builder;
    Enable(&builder);
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port_);
    builder.RegisterAsyncGenericService(&service_);
    queue_ = builder.AddCompletionQueue();
    server_ = builder.BuildAndStart();
    thread_ = std::thread([this] { Run(); });
  }
  ~OneThreadServer() {
    server_->Shutdown(std::chrono::system_clock::now());
    queue_->Shutdown();
    thread_.join();
  }
  int port() const { return port_; }

 private:
  struct Call {
    grpc::GenericServerContext context;
    grpc::GenericServerAsyncReaderWriter stream{&context};
    bool ends = false;
  };

  void Accept() {
    auto* const call = new Call;
    service_.RequestCall(&call->context, &call->stream, queue_.get(),
                         queue_.get(), call);
  }
  void Run() {
    Accept();
    void* tag = nullptr;
    bool ok = false;
    while (queue_->Next(&tag, &ok)) {
      auto* const call = static_cast<Call*>(tag);
      if (!ok || call->ends) {
        delete call;
        continue;
      }
      Accept();
      call->ends = true;
      call->stream.Finish(grpc::Status::OK, call);
    }
  }

  grpc::AsyncGenericService service_;
  int port_ = 0;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
  std::thread thread_;
};

void Open(WirePeer* client, uint32_t stream) {
  client->OpenCall(stream);
  client->Send(FrameType::kHalfClose, stream);
}

// Returns true if the next end is the end of `stream`.
bool Ends(WirePeer* client, uint32_t stream) {
  std::string next;
  do {
    next = client->Next();
  } while (next == absl::StrCat("headers ", stream));
  return next == absl::StrCat("trailers ", stream);
}

TEST(LockedConnectionTest, HoldsUpNoOtherConnection) {
  OneThreadServer server;
  const auto other = WirePeer::Connect(server.port());
  const auto client = WirePeer::Connect(server.port());
  ASSERT_TRUE(other != nullptr && client != nullptr);
  Open(client.get(), 1);
  ASSERT_TRUE(Ends(client.get(), 1));
  auto lock = LockedConnection::Newest();
  ASSERT_NE(lock, nullptr);
  Open(client.get(), 2);
  // The server's thread finds the input of `client` before the last of these.
  for (uint32_t stream : {1, 2, 3}) {
    Open(other.get(), stream);
    EXPECT_TRUE(Ends(other.get(), stream));
  }
  lock = nullptr;
  EXPECT_TRUE(Ends(client.get(), 2));
}

}  // namespace
}  // namespace core
}  // namespace penstock
