// A parameter server in the test's process, over stock gRPC.

#ifndef PENSTOCK_TESTS_PS_SERVICE_NODE_H_
#define PENSTOCK_TESTS_PS_SERVICE_NODE_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "ps/access/access.h"
#include "ps/checkpoint/files.h"
#include "ps/server/checkpoint_restore.h"
#include "ps/server/checkpoint_writer.h"
#include "ps/server/server.h"
#include "ps/service/service.h"
#include "tensor_service/status.h"

namespace penstock::ps {

// One server of a training.
class Node {
 public:
  struct Options {
    checkpoint::Files* files = nullptr;
    bool restore = false;
    std::shared_ptr<RestoreSource> source;  // in place of `files`
    // The lease of a checkpoint's turn. With zero, each attempt ends the
    // previous one.
    absl::Duration lease = absl::ZeroDuration();
    Access* access = nullptr;
    int port = 0;  // 0: a free port
    uint32_t workers = 1;
    // The credentials of the server and of its clients.
    std::shared_ptr<grpc::ServerCredentials> security =
        grpc::InsecureServerCredentials();
    std::shared_ptr<grpc::ChannelCredentials> peers_security =
        grpc::InsecureChannelCredentials();
  };

  explicit Node(const Options& options)
      : peers_security_(options.peers_security) {
    Server::Options server;
    server.membership.expected_workers = options.workers;
    server.log = [](const std::string&) {};
    server.restore = options.source;
    if (options.restore) server.restore = RestoreFrom(options.files);
    core_ = std::make_unique<Server>(server);
    ServiceOptions service;
    service.access = options.access;
    if (options.files != nullptr) {
      CheckpointWriter::Options checkpoints;
      checkpoints.max_wait = absl::Hours(1);
      checkpoints.commits.lease = options.lease;
      writer_ = std::make_unique<CheckpointWriter>(options.files, core_.get(),
                                                   checkpoints);
      service.checkpoints = writer_.get();
    }
    service_ = MakeService(core_.get(), service);
    grpc::ServerBuilder builder;
    tensor::AllowUnlimitedMessages(&builder);
    builder.AddListeningPort(absl::StrCat("127.0.0.1:", options.port),
                             options.security, &port_);
    builder.RegisterService(service_.get());
    server_ = builder.BuildAndStart();
  }
  ~Node() {
    core_->Drain();
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
  }

  Server& core() { return *core_; }
  int port() const { return port_; }
  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }
  std::shared_ptr<grpc::Channel> Connect() const {
    grpc::ChannelArguments arguments = tensor::UnlimitedMessages();
    arguments.SetSslTargetNameOverride("server.test");
    return grpc::CreateCustomChannel(address(), peers_security_, arguments);
  }

 private:
  const std::shared_ptr<grpc::ChannelCredentials> peers_security_;
  int port_ = 0;
  std::unique_ptr<Server> core_;
  std::unique_ptr<CheckpointWriter> writer_;
  std::unique_ptr<grpc::Service> service_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_TESTS_PS_SERVICE_NODE_H_
