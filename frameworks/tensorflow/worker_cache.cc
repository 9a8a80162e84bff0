#include "frameworks/tensorflow/worker_cache.h"

#include "absl/strings/str_cat.h"
#include "frameworks/tensorflow/remote_worker.h"

namespace penstock {
namespace tensorflow {

using ::tensorflow::WorkerInterface;

WorkerCache::WorkerCache(
    std::shared_ptr<::tensorflow::WorkerCacheInterface> stock,
    const ::tensorflow::ClusterDef& cluster, const WorkerInterface* local,
    FindRoute find_route)
    : WorkerCacheWrapper(stock.get()),
      stock_(std::move(stock)),
      local_(local),
      find_route_(std::move(find_route)) {
  for (const ::tensorflow::JobDef& job : cluster.job()) {
    for (const auto& task : job.tasks()) {
      addresses_[absl::StrCat("/job:", job.name(),
                              "/replica:0/task:", task.first)] = task.second;
    }
  }
}

WorkerInterface* WorkerCache::GetOrCreateWorker(const std::string& target) {
  WorkerInterface* const worker = stock_->GetOrCreateWorker(target);
  auto address = addresses_.find(target);
  if (worker == nullptr || worker == local_ || address == addresses_.end()) {
    return worker;
  }
  // Keeps the stock worker and its cache alive for an RPC that continues on its
  // own.
  std::shared_ptr<WorkerInterface> shared(
      worker, [stock = stock_, target](WorkerInterface* released) {
        stock->ReleaseWorker(target, released);
      });
  return new RemoteWorker(target, std::move(shared),
                          find_route_(address->second));
}

void WorkerCache::ReleaseWorker(const std::string& target,
                                WorkerInterface* worker) {
  auto* const remote = dynamic_cast<RemoteWorker*>(worker);
  if (remote == nullptr) return stock_->ReleaseWorker(target, worker);
  delete remote;
}

}  // namespace tensorflow
}  // namespace penstock
