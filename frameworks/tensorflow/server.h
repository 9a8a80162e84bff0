// A task's server: TensorFlow's own server, and a data plane next to it.

#ifndef PENSTOCK_FRAMEWORKS_TENSORFLOW_SERVER_H_
#define PENSTOCK_FRAMEWORKS_TENSORFLOW_SERVER_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "frameworks/tensorflow/plugin_settings.h"
#include "frameworks/tensorflow/reducers.h"
#include "frameworks/tensorflow/route.h"
#include "frameworks/tensorflow/worker.h"
#include "tensorflow/core/distributed_runtime/rpc/grpc_server_lib.h"
#include "transport/base/mutex.h"
#include "transport/rpc/server.h"
#include "transport/settings/settings.h"

namespace penstock {
namespace tensorflow {

constexpr char kProtocol[] = "grpc+penstock";

// A TensorFlow server with a data plane over Penstock. TensorFlow never
// destroys a server.
class Server final : public ::tensorflow::GrpcServer {
 public:
  // Makes the server of a task. Returns INVALID_ARGUMENT for an invalid
  // setting, and the system's error if there is no port or thread for the data
  // plane.
  static absl::Status Create(
      const ::tensorflow::ServerDef& definition,
      ::tensorflow::DeviceMgr* local_devices,
      std::unique_ptr<::tensorflow::ServerInterface>* server);
  ~Server() override;

  // Describe the server for people.
  std::string task() const { return task_; }
  std::vector<Route::Description> DescribeRoutes() const;
  std::vector<rpc::Server::Description> DescribePeers() const;
  std::map<std::string, Team::Description> DescribeTeams() const {
    return reducers_.Describe();
  }

  // Calls `visit` with each server of the process.
  static void ForEach(const std::function<void(const Server&)>& visit);

  // Also gives the changed cluster collectives by teams. TensorFlow calls this
  // for each further strategy of the process.
  absl::Status UpdateServerDef(
      const ::tensorflow::ServerDef& definition) override;

 protected:
  absl::Status WorkerCacheFactory(
      const ::tensorflow::WorkerCacheFactoryOptions& options,
      ::tensorflow::WorkerCacheInterface** worker_cache) override;

 private:
  Server(const ::tensorflow::ServerDef& definition, const Settings& settings,
         const PluginSettings& plugin, progress::PollingMode polling);

  absl::Status Begin(::tensorflow::DeviceMgr* local_devices);
  absl::Status ServeData();
  std::shared_ptr<Route> FindRoute(const std::string& address);

  const Settings settings_;
  const bool has_teams_;
  const progress::PollingMode polling_;
  const std::string task_;
  Reducers reducers_;
  Worker* worker_ = nullptr;  // owned by GrpcServer
  std::unique_ptr<rpc::Server> data_;

  mutable base::Mutex mu_;
  std::map<std::string, std::shared_ptr<Route>> routes_
      ABSL_GUARDED_BY(mu_);  // by address
};

}  // namespace tensorflow
}  // namespace penstock

#endif  // PENSTOCK_FRAMEWORKS_TENSORFLOW_SERVER_H_
