// Runs parameter servers in this process, on their own ports, over stock gRPC.

#ifndef PENSTOCK_TESTS_PS_CLIENT_CLUSTER_H_
#define PENSTOCK_TESTS_PS_CLIENT_CLUSTER_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "ps/client/define.h"
#include "ps/client/worker.h"
#include "ps/server/server.h"
#include "ps/service/service.h"
#include "tensor_service/status.h"

namespace penstock::ps {

inline TableSpec DenseSpecOf(const std::string& name, tensor::Shape shape,
                             int64_t staleness = 0, double rate = 1) {
  TableSpec table;
  table.name = name;
  table.rows = DenseSpec{tensor::DType::kF32, std::move(shape)};
  table.staleness = staleness;
  table.optimizer.schedule.learning_rate = rate;
  return table;
}

inline TableSpec SparseSpecOf(const std::string& name, uint32_t dim,
                              int64_t staleness = 0, double rate = 1) {
  TableSpec table;
  table.name = name;
  SparseSpec sparse;
  sparse.dim = dim;
  table.rows = sparse;
  table.staleness = staleness;
  table.optimizer.schedule.learning_rate = rate;
  return table;
}

// The functions that make servers and channels. Tests of other transports
// replace them.
struct Transport {
  std::function<void(grpc::ServerBuilder*)> enable = [](auto*) {};
  std::function<std::shared_ptr<grpc::ChannelCredentials>()> credentials = [] {
    return grpc::InsecureChannelCredentials();
  };
};

class Cluster {
 public:
  explicit Cluster(
      size_t servers, uint32_t workers = 1, Transport transport = {},
      absl::Duration lease = absl::Seconds(30),
      std::function<void(const std::string&)> log = [](auto&) {})
      : transport_(std::move(transport)), nodes_(servers) {
    options_.membership.expected_workers = workers;
    options_.membership.lease = lease;
    options_.max_wait = absl::Minutes(1);
    options_.log = std::move(log);
    for (size_t i = 0; i < servers; ++i) Start(i);
  }
  ~Cluster() {
    for (size_t i = 0; i < nodes_.size(); ++i) Stop(i);
  }

  // Stops a server. A restarted server has no values and keeps its port.
  void Stop(size_t at) {
    Node& node = nodes_[at];
    if (node.server == nullptr) return;
    node.core->Drain();
    node.server->Shutdown(std::chrono::system_clock::now());
    node.server->Wait();
    node.server = nullptr;
    node.service = nullptr;
    node.core = nullptr;
  }
  void Start(size_t at) {
    Node& node = nodes_[at];
    node.core = std::make_unique<Server>(options_);
    node.service = MakeService(node.core.get());
    grpc::ServerBuilder builder;
    tensor::AllowUnlimitedMessages(&builder);
    transport_.enable(&builder);
    builder.AddListeningPort(absl::StrCat("127.0.0.1:", node.port),
                             grpc::InsecureServerCredentials(), &node.port);
    builder.RegisterService(node.service.get());
    node.server = builder.BuildAndStart();
  }

  size_t size() const { return nodes_.size(); }
  Server& core(size_t at) { return *nodes_[at].core; }
  int port(size_t at) const { return nodes_[at].port; }

  std::string Address(size_t at) const {
    return absl::StrCat("127.0.0.1:", nodes_[at].port);
  }
  std::shared_ptr<grpc::Channel> ChannelTo(int port) const {
    grpc::ChannelArguments arguments = tensor::UnlimitedMessages();
    // Gives each channel a separate connection, like workers in separate
    // processes.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 20);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 100);
    return grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", port),
                                     transport_.credentials(), arguments);
  }
  TrainingConnection::Channels Channels() const {
    TrainingConnection::Channels channels;
    for (const Node& node : nodes_) channels.push_back(ChannelTo(node.port));
    return channels;
  }

  Definition DefinitionOf(Model model) const {
    Definition definition;
    definition.servers = Channels();
    for (size_t i = 0; i < nodes_.size(); ++i) {
      definition.addresses.push_back(Address(i));
    }
    definition.model = std::move(model);
    definition.timeout = absl::Seconds(60);
    return definition;
  }

 private:
  struct Node {
    std::unique_ptr<Server> core;
    std::unique_ptr<grpc::Service> service;
    std::unique_ptr<grpc::Server> server;
    int port = 0;
  };

  const Transport transport_;
  Server::Options options_;
  std::vector<Node> nodes_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_TESTS_PS_CLIENT_CLUSTER_H_
