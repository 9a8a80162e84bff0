// Who takes part in a training run, and which part this process plays.

#ifndef PENSTOCK_PS_CLUSTER_H_
#define PENSTOCK_PS_CLUSTER_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace penstock::ps {

enum class Role {
  kServer,     // "ps"
  kWorker,     // "chief" or "worker"
  kEvaluator,  // pulls, but never pushes; no barrier waits for it
};

// A value type. Addresses are gRPC targets, most often host:port.
struct Cluster {
  std::vector<std::string> servers;
  std::vector<std::string> workers;  // by rank; the chief, if any, is rank 0
  std::vector<std::string> evaluators;
  Role role = Role::kWorker;
  size_t index = 0;  // rank of a worker, else place in its own list

  // The list that `role` and `index` point into.
  const std::vector<std::string>& peers() const;
};

// From TensorFlow's TF_CONFIG, as launchers such as Kubeflow set it:
//
//   {"cluster": {"ps": [..], "chief": [..], "worker": [..], "evaluator": [..]},
//    "task": {"type": "worker", "index": 0}}
//
// A chief is worker rank 0 and pushes the others up by one; "master" is its
// older name. INVALID_ARGUMENT names the field that is missing, of the wrong
// type, unknown or out of range.
absl::StatusOr<Cluster> ParseTfConfig(absl::string_view json);

// ParseTfConfig of the TF_CONFIG that this process was started with. NOT_FOUND
// where there is none or it is empty.
absl::StatusOr<Cluster> ClusterFromEnvironment();

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CLUSTER_H_
