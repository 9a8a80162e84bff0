#include "frameworks/tensorflow/server.h"

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "frameworks/tensorflow/lent_tensor.h"
#include "frameworks/tensorflow/plugin_settings.h"
#include "frameworks/tensorflow/worker_cache.h"
#include "tensorflow/core/common_runtime/device_mgr.h"
#include "tensorflow/core/distributed_runtime/rpc/rpc_rendezvous_mgr.h"
#include "tensorflow/core/platform/env.h"
#include "transport/base/log.h"
#include "transport/base/token.h"
#include "transport/record/recording_file.h"
#include "transport/settings/settings.h"

namespace penstock {
namespace tensorflow {
namespace {

// All servers of this process.
struct Servers {
  base::Mutex mu;
  std::set<const Server*> all ABSL_GUARDED_BY(mu);
};

Servers* AllServers() {
  static auto* const servers = new Servers;
  return servers;
}

std::string TaskOf(const ::tensorflow::ServerDef& definition) {
  return absl::StrCat("/job:", definition.job_name(),
                      "/replica:", definition.replica(),
                      "/task:", definition.task_index());
}

// Records the messages of the data plane, if PENSTOCK_RECORD is set.
void RecordOnce() {
  static const bool begun = [] {
    const std::string path = ResolveRecord().value_or("");
    if (path.empty()) return false;
    const absl::Status status = record::RecordTo(path);
    if (!status.ok()) base::LogError(status.message());
    return status.ok();
  }();
  (void)begun;
}

}  // namespace

absl::Status Server::Create(
    const ::tensorflow::ServerDef& definition,
    ::tensorflow::DeviceMgr* local_devices,
    std::unique_ptr<::tensorflow::ServerInterface>* server) {
  const absl::StatusOr<Settings> settings = ResolveSettings(Options());
  if (!settings.ok()) return settings.status();
  const absl::StatusOr<progress::PollingMode> polling = ResolvePolling();
  if (!polling.ok()) return polling.status();
  const absl::StatusOr<PluginSettings> plugin = ResolvePluginSettings();
  if (!plugin.ok()) return plugin.status();
  SetMaxHeldBytes(plugin->max_held_bytes);
  RecordOnce();
  std::unique_ptr<Server> made(
      new Server(definition, *settings, *plugin, *polling));
  const absl::Status begun = made->Begin(local_devices);
  if (!begun.ok()) return begun;
  *server = std::move(made);
  return absl::OkStatus();
}

Server::Server(const ::tensorflow::ServerDef& definition,
               const Settings& settings, const PluginSettings& plugin,
               progress::PollingMode polling)
    : GrpcServer(definition, ::tensorflow::Env::Default()),
      settings_(settings),
      has_teams_(plugin.reduces_by_group && settings.policy != Policy::kOff),
      polling_(polling),
      task_(TaskOf(definition)) {
  Servers* const servers = AllServers();
  base::MutexLock lock(&servers->mu);
  servers->all.insert(this);
}

Server::~Server() {
  Servers* const servers = AllServers();
  base::MutexLock lock(&servers->mu);
  servers->all.erase(this);
}

absl::Status Server::Begin(::tensorflow::DeviceMgr* local_devices) {
  ::tensorflow::GrpcServerOptions options;
  options.rendezvous_mgr_func = [](const ::tensorflow::WorkerEnv* env) {
    return new ::tensorflow::RpcRendezvousMgr(env);
  };
  options.worker_func = [this](::tensorflow::WorkerEnv* env,
                               const ::tensorflow::ConfigProto& config) {
    auto worker = std::make_unique<Worker>(env, config);
    worker_ = worker.get();
    if (has_teams_) worker_->SetReducers(&reducers_);
    return worker;
  };
  if (has_teams_) {
    options.collective_mgr_func =
        [this](const ::tensorflow::ConfigProto& config,
               const ::tensorflow::WorkerEnv* env,
               ::tensorflow::WorkerCacheInterface* workers) {
          return NewCollectiveManager(config, env->device_mgr, workers, task_,
                                      &reducers_);
        };
  }
  options.local_device_mgr = local_devices;
  const absl::Status begun = Init(options);
  if (!begun.ok()) return begun;
  return settings_.policy == Policy::kOff ? absl::OkStatus() : ServeData();
}

// Opens the data plane. Runs before Start(), so that no peer can ask for the
// hello too early.
absl::Status Server::ServeData() {
  const absl::StatusOr<std::string> token = base::NewToken();
  if (!token.ok()) return token.status();
  rpc::Server::Options options;
  options.token = *token;
  options.settings = settings_;
  options.polling = polling_;
  // Limits messages to protobuf's maximum, because some become protobufs.
  options.max_receive_bytes = INT32_MAX;
  absl::StatusOr<std::unique_ptr<rpc::Server>> data = rpc::Server::Start(
      options,
      [worker = worker_](const std::shared_ptr<rpc::IncomingCall>& call) {
        worker->Handle(call);
      });
  if (!data.ok()) return data.status();
  data_ = *std::move(data);
  worker_->SetHello(Hello{static_cast<uint16_t>(data_->port()), *token});
  base::LogInfo(absl::StrCat("TensorFlow's ", task_, " serves tensors at port ",
                             data_->port()));
  return absl::OkStatus();
}

absl::Status Server::WorkerCacheFactory(
    const ::tensorflow::WorkerCacheFactoryOptions& options,
    ::tensorflow::WorkerCacheInterface** worker_cache) {
  const absl::Status made =
      GrpcServer::WorkerCacheFactory(options, worker_cache);
  if (!made.ok() || settings_.policy == Policy::kOff) return made;
  std::shared_ptr<::tensorflow::WorkerCacheInterface> stock(*worker_cache);
  *worker_cache = new WorkerCache(
      std::move(stock), options.cluster_def, worker_,
      [this](const std::string& address) { return FindRoute(address); });
  return absl::OkStatus();
}

absl::Status Server::UpdateServerDef(
    const ::tensorflow::ServerDef& definition) {
  // Ends the reductions of the manager that TensorFlow destroys below.
  reducers_.AbortAll(absl::AbortedError("the cluster is about to change"));
  const absl::Status updated = GrpcServer::UpdateServerDef(definition);
  if (!updated.ok() || !has_teams_) return updated;
  ::tensorflow::WorkerEnv* const env = worker_env();
  env->collective_executor_mgr.reset(
      NewCollectiveManager(definition.default_session_config(), env->device_mgr,
                           master_env()->worker_cache, task_, &reducers_));
  master_env()->collective_executor_mgr = env->collective_executor_mgr.get();
  return absl::OkStatus();
}

std::shared_ptr<Route> Server::FindRoute(const std::string& address) {
  base::MutexLock lock(&mu_);
  std::shared_ptr<Route>& route = routes_[address];
  if (route == nullptr) {
    Route::Options options;
    options.target = address;
    options.settings = settings_;
    options.polling = polling_;
    options.cpu = worker_env()->device_mgr->HostCPU();
    route = std::make_shared<Route>(options);
  }
  return route;
}

std::vector<Route::Description> Server::DescribeRoutes() const {
  std::vector<std::shared_ptr<Route>> routes;
  {
    base::MutexLock lock(&mu_);
    for (const auto& entry : routes_) routes.push_back(entry.second);
  }
  std::vector<Route::Description> descriptions;
  for (const auto& route : routes) descriptions.push_back(route->Describe());
  return descriptions;
}

std::vector<rpc::Server::Description> Server::DescribePeers() const {
  if (data_ == nullptr) return {};
  return data_->Describe();
}

void Server::ForEach(const std::function<void(const Server&)>& visit) {
  Servers* const servers = AllServers();
  base::MutexLock lock(&servers->mu);
  for (const Server* server : servers->all) visit(*server);
}

}  // namespace tensorflow
}  // namespace penstock
