// A service that asks Access about each call, with its server and channels.

#ifndef PENSTOCK_TESTS_PS_ACCESS_GUARDED_SERVICE_H_
#define PENSTOCK_TESTS_PS_ACCESS_GUARDED_SERVICE_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "grpcpp/support/server_callback.h"
#include "penstock/penstock.h"
#include "ps/access/access.h"
#include "ps/access/send_secret.h"
#include "tensor_service/status.h"
#include "tests/ps/access/guarded.grpc.pb.h"

namespace penstock::ps {

// A service whose methods ask Access first. Train takes raw messages, as
// methods with tensors do.
class GuardedService final
    : public testing::Guarded::WithRawCallbackMethod_Train<
          testing::Guarded::WithCallbackMethod_Read<
              testing::Guarded::WithCallbackMethod_Administer<
                  testing::Guarded::WithCallbackMethod_Attend<
                      testing::Guarded::Service>>>> {
 public:
  explicit GuardedService(Access* access) : access_(access) {}

  grpc::ServerUnaryReactor* Read(grpc::CallbackServerContext* context,
                                 const testing::Empty*,
                                 testing::Empty*) override {
    return Finish(context, Permission::kRead);
  }
  grpc::ServerUnaryReactor* Train(grpc::CallbackServerContext* context,
                                  const grpc::ByteBuffer*,
                                  grpc::ByteBuffer* reply) override {
    *reply = grpc::ByteBuffer(nullptr, 0);
    return Finish(context, Permission::kTrain);
  }
  grpc::ServerUnaryReactor* Administer(grpc::CallbackServerContext* context,
                                       const testing::Empty*,
                                       testing::Empty*) override {
    return Finish(context, Permission::kAdminister);
  }
  grpc::ServerReadReactor<testing::Empty>* Attend(
      grpc::CallbackServerContext* context, testing::Empty*) override {
    return new AttendReactor(access_->Check(*context, Permission::kTrain));
  }

 private:
  class AttendReactor final : public grpc::ServerReadReactor<testing::Empty> {
   public:
    explicit AttendReactor(const absl::Status& may) {
      if (may.ok()) {
        StartRead(&request_);
      } else {
        Finish(tensor::ToGrpc(may));
      }
    }
    void OnReadDone(bool ok) override {
      if (!ok) return Finish(grpc::Status::OK);
      StartRead(&request_);
    }
    void OnDone() override { delete this; }

   private:
    testing::Empty request_;
  };

  grpc::ServerUnaryReactor* Finish(grpc::CallbackServerContext* context,
                                   Permission permission) {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(tensor::ToGrpc(access_->Check(*context, permission)));
    return reactor;
  }

  Access* const access_;
};

enum class Way { kStock, kTcp, kShm };

inline Options OptionsOf(Way way) {
  Options options;
  options.policy = way == Way::kStock ? Policy::kOff : Policy::kRequire;
  if (way == Way::kTcp) options.fabrics = {Fabric::kTcp};
  if (way == Way::kShm) options.fabrics = {Fabric::kShm};
  return options;
}

// A server of GuardedService on its own port, over one transport.
class GuardedServer {
 public:
  GuardedServer(Way way, Access* access,
                const std::shared_ptr<grpc::ServerCredentials>& security)
      : way_(way), service_(access) {
    grpc::ServerBuilder builder;
    Enable(&builder, OptionsOf(way));
    builder.AddListeningPort("127.0.0.1:0", security, &port_);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
  }
  ~GuardedServer() { server_->Shutdown(); }
  GuardedServer(const GuardedServer&) = delete;
  GuardedServer& operator=(const GuardedServer&) = delete;

  // Returns a channel with its own connection, over this transport only.
  std::shared_ptr<grpc::Channel> Connect(
      const std::shared_ptr<grpc::ChannelCredentials>& security,
      const std::string& secret = "") const {
    return ConnectWith(security, SendSecret(secret));
  }
  std::shared_ptr<grpc::Channel> ConnectWith(
      const std::shared_ptr<grpc::ChannelCredentials>& security,
      InterceptorFactories factories) const {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetSslTargetNameOverride("server.test");
    return grpc::experimental::CreateCustomChannelWithInterceptors(
        absl::StrCat("127.0.0.1:", port_),
        Credentials(security, OptionsOf(way_)), arguments,
        std::move(factories));
  }

 private:
  const Way way_;
  GuardedService service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_TESTS_PS_ACCESS_GUARDED_SERVICE_H_
