#include "tests/soak/chat.h"

#include <future>
#include <utility>

#include "grpcpp/support/async_stream.h"
#include "grpcpp/support/client_callback.h"
#include "grpcpp/support/sync_stream.h"

namespace penstock::soak {
namespace {

class SyncChat final : public ChatStream {
 public:
  SyncChat(Soak::Stub* stub, grpc::ClientContext* context)
      : stream_(stub->Chat(context)) {}

  bool Write(const Order& order) override { return stream_->Write(order); }
  bool Read(Chunk* response) override { return stream_->Read(response); }
  bool WritesDone() override { return stream_->WritesDone(); }
  grpc::Status Finish() override { return stream_->Finish(); }

 private:
  const std::unique_ptr<grpc::ClientReaderWriter<Order, Chunk>> stream_;
};

class AsyncChat final : public ChatStream {
 public:
  AsyncChat(Soak::Stub* stub, grpc::ClientContext* context,
            grpc::CompletionQueue* queue)
      : queue_(queue), stream_(stub->AsyncChat(context, queue, nullptr)) {
    (void)Await();
  }

  bool Write(const Order& order) override {
    stream_->Write(order, nullptr);
    return Await();
  }
  bool Read(Chunk* response) override {
    stream_->Read(response, nullptr);
    return Await();
  }
  bool WritesDone() override {
    stream_->WritesDone(nullptr);
    return Await();
  }
  grpc::Status Finish() override {
    grpc::Status status;
    stream_->Finish(&status, nullptr);
    (void)Await();
    return status;
  }

 private:
  // Waits for the current operation. Returns true if it succeeded.
  bool Await() {
    void* tag = nullptr;
    bool ok = false;
    return queue_->Next(&tag, &ok) && ok;
  }

  grpc::CompletionQueue* const queue_;
  const std::unique_ptr<grpc::ClientAsyncReaderWriter<Order, Chunk>> stream_;
};

class CallbackChat final : public ChatStream,
                           private grpc::ClientBidiReactor<Order, Chunk> {
 public:
  CallbackChat(Soak::Stub* stub, grpc::ClientContext* context) {
    stub->async()->Chat(context, this);
    AddHold();  // needed to start operations outside of reactions
    StartCall();
  }

  bool Write(const Order& order) override {
    operation_ = std::promise<bool>();
    StartWrite(&order);
    return operation_.get_future().get();
  }
  bool Read(Chunk* response) override {
    operation_ = std::promise<bool>();
    StartRead(response);
    return operation_.get_future().get();
  }
  bool WritesDone() override {
    operation_ = std::promise<bool>();
    StartWritesDone();
    return operation_.get_future().get();
  }
  grpc::Status Finish() override {
    RemoveHold();
    return end_.get_future().get();
  }

 private:
  void OnWriteDone(bool ok) override { operation_.set_value(ok); }
  void OnReadDone(bool ok) override { operation_.set_value(ok); }
  void OnWritesDoneDone(bool ok) override { operation_.set_value(ok); }
  void OnDone(const grpc::Status& status) override { end_.set_value(status); }

  std::promise<bool> operation_;
  std::promise<grpc::Status> end_;
};

}  // namespace

std::unique_ptr<ChatStream> StartChat(Api api, Soak::Stub* stub,
                                      grpc::ClientContext* context,
                                      grpc::CompletionQueue* queue) {
  switch (api) {
    case Api::kSync:
      return std::make_unique<SyncChat>(stub, context);
    case Api::kAsync:
      return std::make_unique<AsyncChat>(stub, context, queue);
    case Api::kCallback:
      return std::make_unique<CallbackChat>(stub, context);
  }
  return nullptr;
}

}  // namespace penstock::soak
