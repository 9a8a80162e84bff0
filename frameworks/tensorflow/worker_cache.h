// The workers of a cluster, with a route to each.

#ifndef PENSTOCK_FRAMEWORKS_TENSORFLOW_WORKER_CACHE_H_
#define PENSTOCK_FRAMEWORKS_TENSORFLOW_WORKER_CACHE_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "frameworks/tensorflow/route.h"
#include "tensorflow/core/distributed_runtime/worker_cache_wrapper.h"
#include "tensorflow/core/protobuf/cluster.pb.h"

namespace penstock {
namespace tensorflow {

// Returns the route to the task at `address`.
using FindRoute =
    std::function<std::shared_ptr<Route>(const std::string& address)>;

// Wraps TensorFlow's own cache, and owns it.
class WorkerCache final : public ::tensorflow::WorkerCacheWrapper {
 public:
  // Wraps `stock`. Does not wrap `local`, this process's worker, even if a
  // session's own cluster gives its task another name.
  WorkerCache(std::shared_ptr<::tensorflow::WorkerCacheInterface> stock,
              const ::tensorflow::ClusterDef& cluster,
              const ::tensorflow::WorkerInterface* local, FindRoute find_route);

  ::tensorflow::WorkerInterface* GetOrCreateWorker(
      const std::string& target) override;
  void ReleaseWorker(const std::string& target,
                     ::tensorflow::WorkerInterface* worker) override;

 private:
  const std::shared_ptr<::tensorflow::WorkerCacheInterface> stock_;
  const ::tensorflow::WorkerInterface* const local_;
  const FindRoute find_route_;
  std::map<std::string, std::string> addresses_;  // by task
};

}  // namespace tensorflow
}  // namespace penstock

#endif  // PENSTOCK_FRAMEWORKS_TENSORFLOW_WORKER_CACHE_H_
