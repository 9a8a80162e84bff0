// A fixture with both tensor services on one server, small budgets, and clients
// that do not read their answers.

#ifndef PENSTOCK_TESTS_TENSOR_SERVICE_SHARES_TEST_UTIL_H_
#define PENSTOCK_TESTS_TENSOR_SERVICE_SHARES_TEST_UTIL_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/message_lite.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "tensor_service/calls.h"
#include "tensor_service/rendezvous_service.h"
#include "tensor_service/service.h"
#include "tensor_service/status.h"

namespace penstock::tensor {

inline constexpr size_t kKiB = 1024;
inline constexpr size_t kMiB = 1024 * kKiB;
inline constexpr size_t kBudget = 16 * kMiB;

inline Tensor OfBytes(size_t size) {
  return *Tensor::Of<uint8_t>({static_cast<int64_t>(size)},
                              std::vector<uint8_t>(size, 7));
}

inline Bundle Only(const std::string& name, const Tensor& tensor) {
  Bundle bundle;
  bundle.tensors.push_back({name, tensor});
  return bundle;
}

// Waits until the condition is true. gRPC may still be delivering.
inline bool Becomes(const std::function<bool()>& is_so) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!is_so()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

class SharesTest : public testing::Test {
 protected:
  SharesTest()
      : exchange_(MakeTensorService(&store_)),
        meeting_(MakeRendezvousService(&table_)) {
    grpc::ServerBuilder builder;
    AllowUnlimitedMessages(&builder);
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port_);
    builder.RegisterService(exchange_.get());
    builder.RegisterService(meeting_.get());
    server_ = builder.BuildAndStart();
  }
  ~SharesTest() override {
    table_.CancelAll(absl::UnavailableError("the test ends")).IgnoreError();
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
  }

  // Makes a channel with its own connection, like a separate process.
  std::shared_ptr<grpc::Channel> Channel() const {
    grpc::ChannelArguments arguments = UnlimitedMessages();
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);  // windows stay small
    return grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", port_),
                                     grpc::InsecureChannelCredentials(),
                                     arguments);
  }

  absl::Status Call(const std::string& method, const std::string& request) {
    CallQueue queue;
    grpc::Slice slice(request);
    queue.Start(Channel(),
                absl::StrCat("/penstock.tensor.v1.TensorExchange/", method),
                grpc::ByteBuffer(&slice, 1), absl::Minutes(1));
    return queue.Wait().front().status;
  }

  static TensorStore::Options StoreOptions() {
    TensorStore::Options options;
    options.budget_bytes = kBudget;
    options.stall_limit = absl::Milliseconds(200);
    return options;
  }
  static Rendezvous::Options TableOptions() {
    Rendezvous::Options options;
    options.budget_bytes = kBudget;
    options.max_waiters = 20;
    return options;
  }

  TensorStore store_{StoreOptions()};
  Rendezvous table_{TableOptions()};
  std::unique_ptr<grpc::Service> exchange_;
  std::unique_ptr<grpc::Service> meeting_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
};

// A call whose client does not read the answer. The connection's window blocks
// the rest of the answer.
class Stalled {
 public:
  Stalled(const std::shared_ptr<grpc::Channel>& channel,
          const std::string& method,
          const google::protobuf::MessageLite& request)
      : stub_(channel), call_(stub_.PrepareCall(&context_, method, &queue_)) {
    call_->StartCall(this);
    Wait();
    call_->Write(FromProto(request), this);
    Wait();
    call_->WritesDone(this);
    Wait();
  }
  ~Stalled() {
    context_.TryCancel();
    grpc::Status status;
    call_->Finish(&status, this);
    Wait();
    queue_.Shutdown();
  }
  Stalled(const Stalled&) = delete;
  Stalled& operator=(const Stalled&) = delete;

 private:
  void Wait() {
    void* tag;
    bool ok;
    queue_.Next(&tag, &ok);
  }

  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  grpc::GenericStub stub_;
  const std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
};

}  // namespace penstock::tensor

#endif  // PENSTOCK_TESTS_TENSOR_SERVICE_SHARES_TEST_UTIL_H_
