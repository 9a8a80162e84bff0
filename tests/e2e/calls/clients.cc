#include "tests/e2e/calls/clients.h"

#include <atomic>
#include <future>
#include <memory>

#include "grpcpp/completion_queue.h"
#include "grpcpp/support/async_stream.h"
#include "grpcpp/support/async_unary_call.h"
#include "grpcpp/support/client_callback.h"
#include "tests/e2e/call.h"

namespace penstock::e2e {
namespace {

using Sizes = std::vector<size_t>;

SimpleRequest UnaryRequestOf(size_t size) {
  SimpleRequest request;
  request.set_response_size(size);
  *request.mutable_payload() = ZeroPayload(size);
  return request;
}

bool Await(grpc::CompletionQueue* queue) {
  void* tag = nullptr;
  bool ok = false;
  return queue->Next(&tag, &ok) && ok;
}

grpc::Status AsyncUnary(TestService::Stub* stub, Call* call,
                        const SimpleRequest& request,
                        SimpleResponse* response) {
  grpc::CompletionQueue queue;
  grpc::Status status;
  auto reader = stub->AsyncUnaryCall(call, request, &queue);
  reader->Finish(response, &status, nullptr);
  Await(&queue);
  return status;
}

grpc::Status CallbackUnary(TestService::Stub* stub, Call* call,
                           const SimpleRequest& request,
                           SimpleResponse* response) {
  std::promise<grpc::Status> done;
  stub->async()->UnaryCall(call, &request, response, [&](grpc::Status status) {
    done.set_value(std::move(status));
  });
  return done.get_future().get();
}

Ending SyncDuplex(TestService::Stub* stub, const Sizes& sizes, bool cancel) {
  Call call;
  Ending ending;
  auto stream = stub->FullDuplexCall(&call);
  for (size_t size : sizes) {
    StreamingOutputCallResponse response;
    if (!stream->Write(RequestOf(size, size)) || !stream->Read(&response)) {
      break;
    }
    ending.sizes.push_back(response.payload().body().size());
  }
  if (cancel) {
    call.TryCancel();
  } else {
    stream->WritesDone();
  }
  ending.status = stream->Finish();
  return ending;
}

Ending AsyncDuplex(TestService::Stub* stub, const Sizes& sizes, bool cancel) {
  Call call;
  Ending ending;
  grpc::CompletionQueue queue;
  auto stream = stub->AsyncFullDuplexCall(&call, &queue, nullptr);
  Await(&queue);
  for (size_t size : sizes) {
    StreamingOutputCallResponse response;
    stream->Write(RequestOf(size, size), nullptr);
    if (!Await(&queue)) break;
    stream->Read(&response, nullptr);
    if (!Await(&queue)) break;
    ending.sizes.push_back(response.payload().body().size());
  }
  if (cancel) {
    call.TryCancel();
  } else {
    stream->WritesDone(nullptr);
    Await(&queue);
  }
  stream->Finish(&ending.status, nullptr);
  Await(&queue);
  return ending;
}

class DuplexReactor final
    : public grpc::ClientBidiReactor<StreamingOutputCallRequest,
                                     StreamingOutputCallResponse> {
 public:
  DuplexReactor(TestService::Stub* stub, Sizes sizes, bool cancel)
      : sizes_(std::move(sizes)), cancel_(cancel) {
    stub->async()->FullDuplexCall(&call_, this);
    StartTurn();
    StartCall();
  }

  Ending Await() { return done_.get_future().get(); }

  void OnWriteDone(bool ok) override {
    if (ok) HalfOfTurnDone();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    ending_.sizes.push_back(response_.payload().body().size());
    HalfOfTurnDone();
  }

  void OnDone(const grpc::Status& status) override {
    ending_.status = status;
    done_.set_value(ending_);
  }

 private:
  void StartTurn() {
    const size_t size = sizes_[ending_.sizes.size()];
    request_ = RequestOf(size, size);
    halves_ = 2;
    StartWrite(&request_);
    StartRead(&response_);
  }

  // Counts the two halves of an exchange: the end of the write, and the
  // response. The response may arrive before the end of the write is reported.
  void HalfOfTurnDone() {
    if (--halves_ > 0) return;
    if (ending_.sizes.size() < sizes_.size()) {
      StartTurn();
    } else if (cancel_) {
      call_.TryCancel();
    } else {
      StartWritesDone();
    }
  }

  Call call_;
  const Sizes sizes_;
  const bool cancel_;
  std::atomic<int> halves_{0};
  StreamingOutputCallRequest request_;
  StreamingOutputCallResponse response_;
  Ending ending_;
  std::promise<Ending> done_;
};

}  // namespace

Ending MakeUnaryCall(Api api, TestService::Stub* stub, size_t size) {
  Call call;
  Ending ending;
  const SimpleRequest request = UnaryRequestOf(size);
  SimpleResponse response;
  switch (api) {
    case Api::kSync:
      ending.status = stub->UnaryCall(&call, request, &response);
      break;
    case Api::kAsync:
      ending.status = AsyncUnary(stub, &call, request, &response);
      break;
    case Api::kCallback:
      ending.status = CallbackUnary(stub, &call, request, &response);
      break;
  }
  if (ending.status.ok()) {
    ending.sizes.push_back(response.payload().body().size());
  }
  return ending;
}

Ending MakeDuplexCall(Api api, TestService::Stub* stub, const Sizes& sizes,
                      bool cancel) {
  switch (api) {
    case Api::kSync:
      return SyncDuplex(stub, sizes, cancel);
    case Api::kAsync:
      return AsyncDuplex(stub, sizes, cancel);
    case Api::kCallback:
      return DuplexReactor(stub, sizes, cancel).Await();
  }
  return {};
}

}  // namespace penstock::e2e
