// A parameter server with answers scripted by the test.

#ifndef PENSTOCK_TESTS_PS_CLIENT_SCRIPTED_SERVER_H_
#define PENSTOCK_TESTS_PS_CLIENT_SCRIPTED_SERVER_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "tensor_service/status.h"

namespace penstock::ps {

// A server that accepts calls of any unary method. A script provides the
// answers. Thread-safe.
class ScriptedServer {
 public:
  struct Answer {
    grpc::Status status;
    grpc::ByteBuffer bytes;
  };
  // A function that answers a call of `method`, such as "Push". Returns nullopt
  // to leave the call unanswered until its cancellation. Runs on gRPC's
  // threads, several at a time.
  using Script = std::function<absl::optional<Answer>(
      const std::string& method, const grpc::ByteBuffer& request)>;

  explicit ScriptedServer(Script script) : script_(std::move(script)) {
    service_.owner = this;
    grpc::ServerBuilder builder;
    tensor::AllowUnlimitedMessages(&builder);
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port_);
    builder.RegisterCallbackGenericService(&service_);
    server_ = builder.BuildAndStart();
  }
  ~ScriptedServer() {
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
  }

  std::shared_ptr<grpc::Channel> Channel() const {
    grpc::ChannelArguments arguments = tensor::UnlimitedMessages();
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", port_),
                                     grpc::InsecureChannelCredentials(),
                                     arguments);
  }

 private:
  class Reactor final : public grpc::ServerGenericBidiReactor {
   public:
    Reactor(const Script* script, std::string method)
        : script_(script), method_(std::move(method)) {
      StartRead(&request_);
    }
    void OnReadDone(bool ok) override {
      if (!ok) return End(grpc::Status::CANCELLED);
      absl::optional<Answer> answer = (*script_)(method_, request_);
      if (!answer.has_value()) return;  // OnCancel() ends the call
      {
        absl::MutexLock lock(&mu_);
        if (std::exchange(is_ended_, true)) return;
      }
      if (!answer->status.ok()) return Finish(answer->status);
      reply_ = std::move(answer->bytes);
      StartWriteAndFinish(&reply_, grpc::WriteOptions(), grpc::Status::OK);
    }
    void OnCancel() override { End(grpc::Status::CANCELLED); }
    void OnDone() override { delete this; }

   private:
    void End(const grpc::Status& status) {
      {
        absl::MutexLock lock(&mu_);
        if (std::exchange(is_ended_, true)) return;
      }
      Finish(status);
    }

    const Script* const script_;
    const std::string method_;
    grpc::ByteBuffer request_;
    grpc::ByteBuffer reply_;
    absl::Mutex mu_;
    bool is_ended_ = false;
  };

  struct Service final : grpc::CallbackGenericService {
    ScriptedServer* owner = nullptr;
    grpc::ServerGenericBidiReactor* CreateReactor(
        grpc::GenericCallbackServerContext* context) override {
      const std::string& path = context->method();
      return new Reactor(&owner->script_, path.substr(path.rfind('/') + 1));
    }
  };

  const Script script_;
  Service service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_TESTS_PS_CLIENT_SCRIPTED_SERVER_H_
