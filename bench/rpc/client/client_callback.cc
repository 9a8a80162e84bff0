// gRPC's callback client API.

#include "grpcpp/support/client_callback.h"

#include <memory>
#include <vector>

#include "absl/synchronization/blocking_counter.h"
#include "bench/rpc/client/client.h"
#include "bench/rpc/setup/service.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/impl/rpc_method.h"

namespace penstock {
namespace bench {
namespace {

using grpc::ByteBuffer;
using grpc::internal::RpcMethod;

// The consecutive unary RPCs of one lane. Each starts in the callback of the
// previous one.
class EchoCalls {
 public:
  EchoCalls(const std::shared_ptr<grpc::Channel>& channel, Lane* lane,
            absl::BlockingCounter* running)
      : stub_(channel), lane_(lane), running_(running) {}

  void Begin() {
    if (!lane_->Start(&request_)) {
      running_->DecrementCount();  // may destroy this object
      return;
    }
    context_ = std::make_unique<grpc::ClientContext>();
    SetDeadline(context_.get());
    stub_.UnaryCall(context_.get(), kEchoMethod, {}, &request_, &reply_,
                    [this](const grpc::Status& status) {
                      lane_->Finish(status, reply_);
                      Begin();
                    });
  }

 private:
  grpc::GenericStub stub_;
  Lane* const lane_;
  absl::BlockingCounter* const running_;
  ByteBuffer request_;
  ByteBuffer reply_;
  std::unique_ptr<grpc::ClientContext> context_;
};

// The stream of one lane.
class StreamCall final : public grpc::ClientWriteReactor<ByteBuffer> {
 public:
  StreamCall(const std::shared_ptr<grpc::Channel>& channel, Lane* lane,
             absl::BlockingCounter* running)
      : channel_(channel), lane_(lane), running_(running) {}

  void Begin() {
    grpc::internal::ClientCallbackWriterFactory<ByteBuffer>::Create(
        channel_.get(),
        RpcMethod(kStreamMethod, RpcMethod::CLIENT_STREAMING, channel_),
        &context_, &reply_, this);
    Write();
    StartCall();
  }

  void OnWriteDone(bool ok) override {
    if (!ok) return;  // OnDone follows, with the reason
    lane_->Written();
    Write();
  }

  void OnDone(const grpc::Status& status) override {
    lane_->Close(status, reply_);
    running_->DecrementCount();  // may destroy this object
  }

 private:
  void Write() {
    if (lane_->Start(&message_)) {
      StartWrite(&message_);
    } else {
      StartWritesDone();
    }
  }

  const std::shared_ptr<grpc::Channel> channel_;
  Lane* const lane_;
  absl::BlockingCounter* const running_;
  grpc::ClientContext context_;
  ByteBuffer message_;
  ByteBuffer reply_;
};

template <typename CallType>
void RunCalls(const std::shared_ptr<grpc::Channel>& channel, Load* load) {
  std::vector<Lane*> lanes;
  for (int i = 0; i < load->threads(); ++i) {
    for (Lane* lane : load->LanesOf(i)) lanes.push_back(lane);
  }
  absl::BlockingCounter running(static_cast<int>(lanes.size()));
  std::vector<std::unique_ptr<CallType>> calls;
  for (Lane* lane : lanes) {
    calls.push_back(std::make_unique<CallType>(channel, lane, &running));
    calls.back()->Begin();
  }
  running.Wait();
}

}  // namespace

void RunEchoCallback(const std::shared_ptr<grpc::Channel>& channel,
                     Load* load) {
  RunCalls<EchoCalls>(channel, load);
}

void RunStreamCallback(const std::shared_ptr<grpc::Channel>& channel,
                       Load* load) {
  RunCalls<StreamCall>(channel, load);
}

}  // namespace bench
}  // namespace penstock
