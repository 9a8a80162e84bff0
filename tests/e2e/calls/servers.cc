#include "tests/e2e/calls/servers.h"

#include <future>
#include <thread>

#include "grpcpp/completion_queue.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/async_stream.h"
#include "grpcpp/support/async_unary_call.h"
#include "grpcpp/support/server_callback.h"
#include "tests/e2e/test_service.h"
#include "tests/e2e/testing.grpc.pb.h"

namespace penstock::e2e {
namespace {

using Request = StreamingOutputCallRequest;
using Response = StreamingOutputCallResponse;

void Answer(const SimpleRequest& request, SimpleResponse* response) {
  *response->mutable_payload() = ZeroPayload(request.response_size());
}

void Answer(const Request& request, Response* response) {
  *response->mutable_payload() =
      ZeroPayload(request.response_parameters(0).size());
}

// The result of the first call that ends.
class Outcome {
 public:
  void Set(bool cancelled) {
    std::call_once(once_, [&] { cancelled_.set_value(cancelled); });
  }
  bool Await() {
    auto future = cancelled_.get_future();
    return future.wait_for(std::chrono::seconds(10)) ==
               std::future_status::ready &&
           future.get();
  }

 private:
  std::once_flag once_;
  std::promise<bool> cancelled_;
};

class SyncServer final : public ApiServer, public TestService::Service {
 public:
  void Register(grpc::ServerBuilder* builder) override {
    builder->RegisterService(this);
  }
  void Begin() override {}
  void End() override {}
  bool AwaitCancelled() override { return outcome_.Await(); }

  grpc::Status UnaryCall(grpc::ServerContext*, const SimpleRequest* request,
                         SimpleResponse* response) override {
    Answer(*request, response);
    return grpc::Status::OK;
  }

  grpc::Status FullDuplexCall(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<Response, Request>* stream) override {
    Request request;
    while (stream->Read(&request)) {
      Response response;
      Answer(request, &response);
      stream->Write(response);
    }
    outcome_.Set(context->IsCancelled());
    return grpc::Status::OK;
  }

 private:
  Outcome outcome_;
};

// A server with one thread, which waits for one operation at a time.
class AsyncServer final : public ApiServer {
 public:
  void Register(grpc::ServerBuilder* builder) override {
    builder->RegisterService(&service_);
    queue_ = builder->AddCompletionQueue();
  }

  void Begin() override {
    thread_ = std::thread([this] {
      if (ServeUnary()) ServeDuplex();
    });
  }

  void End() override {
    queue_->Shutdown();
    thread_.join();
    // Drains the queue. The remaining tags belong to the server.
    void* tag = nullptr;
    bool ok = false;
    while (queue_->Next(&tag, &ok)) {
    }
  }

  bool AwaitCancelled() override { return outcome_.Await(); }

 private:
  bool ServeUnary() {
    grpc::ServerContext context;
    SimpleRequest request;
    grpc::ServerAsyncResponseWriter<SimpleResponse> writer(&context);
    service_.RequestUnaryCall(&context, &request, &writer, queue_.get(),
                              queue_.get(), this);
    if (!Await()) return false;
    SimpleResponse response;
    Answer(request, &response);
    writer.Finish(response, grpc::Status::OK, this);
    return Await();
  }

  void ServeDuplex() {
    grpc::ServerContext context;
    grpc::ServerAsyncReaderWriter<Response, Request> stream(&context);
    context.AsyncNotifyWhenDone(&done_);
    service_.RequestFullDuplexCall(&context, &stream, queue_.get(),
                                   queue_.get(), this);
    if (!Await()) return;
    Request request;
    while (stream.Read(&request, this), Await()) {
      Response response;
      Answer(request, &response);
      stream.Write(response, this);
      if (!Await()) break;
    }
    stream.Finish(grpc::Status::OK, this);
    Await();
    while (!is_done_) Next();
    outcome_.Set(context.IsCancelled());
  }

  // Waits for the current operation. Records if the call ends meanwhile.
  bool Await() {
    while (true) {
      const Event event = Next();
      if (event.tag != &done_) return event.ok;
    }
  }

  struct Event {
    void* tag = nullptr;
    bool ok = false;
  };
  Event Next() {
    Event event;
    if (!queue_->Next(&event.tag, &event.ok)) is_done_ = true;
    if (event.tag == &done_) is_done_ = true;
    return event;
  }

  TestService::AsyncService service_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::thread thread_;
  Outcome outcome_;
  char done_ = 0;  // used only as an address
  bool is_done_ = false;
};

class CallbackServer final : public ApiServer,
                             public TestService::CallbackService {
 public:
  void Register(grpc::ServerBuilder* builder) override {
    builder->RegisterService(this);
  }
  void Begin() override {}
  void End() override {}
  bool AwaitCancelled() override { return outcome_.Await(); }

  grpc::ServerUnaryReactor* UnaryCall(grpc::CallbackServerContext* context,
                                      const SimpleRequest* request,
                                      SimpleResponse* response) override {
    Answer(*request, response);
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  grpc::ServerBidiReactor<Request, Response>* FullDuplexCall(
      grpc::CallbackServerContext* context) override {
    return new Duplex(context, &outcome_);
  }

 private:
  class Duplex final : public grpc::ServerBidiReactor<Request, Response> {
   public:
    Duplex(grpc::CallbackServerContext* context, Outcome* outcome)
        : context_(context), outcome_(outcome) {
      StartRead(&request_);
    }
    void OnReadDone(bool ok) override {
      if (!ok) return Finish(grpc::Status::OK);
      Answer(request_, &response_);
      StartWrite(&response_);
    }
    void OnWriteDone(bool ok) override {
      if (!ok) return Finish(grpc::Status::OK);
      StartRead(&request_);
    }
    void OnDone() override {
      outcome_->Set(context_->IsCancelled());
      delete this;
    }

   private:
    grpc::CallbackServerContext* const context_;
    Outcome* const outcome_;
    Request request_;
    Response response_;
  };

  Outcome outcome_;
};

}  // namespace

const char* NameOf(Api api) {
  switch (api) {
    case Api::kSync:
      return "Sync";
    case Api::kAsync:
      return "Async";
    case Api::kCallback:
      return "Callback";
  }
  return "";
}

std::unique_ptr<ApiServer> MakeApiServer(Api api) {
  switch (api) {
    case Api::kSync:
      return std::make_unique<SyncServer>();
    case Api::kAsync:
      return std::make_unique<AsyncServer>();
    case Api::kCallback:
      return std::make_unique<CallbackServer>();
  }
  return nullptr;
}

}  // namespace penstock::e2e
