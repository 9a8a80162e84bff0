// A server with Penstock on, and a channel to the server over one fabric.

#ifndef PENSTOCK_TESTS_TENSOR_SERVICE_ENABLED_SERVER_H_
#define PENSTOCK_TESTS_TENSOR_SERVICE_ENABLED_SERVER_H_

#include <chrono>
#include <memory>

#include "absl/strings/str_cat.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "penstock/penstock.h"
#include "tensor_service/status.h"

namespace penstock::tensor {

class EnabledServer {
 public:
  // Starts the server. `service` must outlive this object. Calls fail if
  // `fabric` cannot carry them. Make a first call before a test that relies on
  // the path, because the first message of a connection may precede the
  // agreement on the path.
  EnabledServer(grpc::Service* service, Fabric fabric) {
    Options options;
    options.policy = Policy::kRequire;
    options.fabrics = {fabric};
    grpc::ServerBuilder builder;
    Enable(&builder, options);
    AllowUnlimitedMessages(&builder);
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port);
    builder.RegisterService(service);
    server_ = builder.BuildAndStart();
    channel_ = grpc::CreateCustomChannel(
        absl::StrCat("127.0.0.1:", port),
        Credentials(grpc::InsecureChannelCredentials(), options),
        UnlimitedMessages());
  }
  // Ends all calls and the server.
  ~EnabledServer() {
    channel_.reset();
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
  }

  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }

 private:
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace penstock::tensor

#endif  // PENSTOCK_TESTS_TENSOR_SERVICE_ENABLED_SERVER_H_
