// The members of a training run, and the role of this process.

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
  kEvaluator,  // only pulls; no barrier waits for an evaluator
};

// The members of a training run, and this process among them. Addresses are
// gRPC targets, most often host:port.
struct Cluster {
  std::vector<std::string> servers;
  std::vector<std::string> workers;  // by rank; the chief, if any, is rank 0
  std::vector<std::string> evaluators;
  Role role = Role::kWorker;
  size_t index = 0;  // into peers(); a worker's is its rank

  // Returns the list that `role` selects. `index` is an index into that list,
  // except for an evaluator that the cluster does not list.
  const std::vector<std::string>& peers() const;
};

// Parses TensorFlow's TF_CONFIG, as launchers such as Kubeflow set it:
//
//   {"cluster": {"ps": [..], "chief": [..], "worker": [..], "evaluator": [..]},
//    "task": {"type": "worker", "index": 0}}
//
// A chief becomes worker rank 0, and the ranks of the other workers grow by
// one. "master" is an older name of "chief". Returns INVALID_ARGUMENT, which
// names the field, if a field is missing, of the wrong type, unknown or out of
// range.
absl::StatusOr<Cluster> ParseTfConfig(absl::string_view json);

// Parses the environment variable TF_CONFIG. Returns NOT_FOUND if the variable
// is unset or empty. Otherwise returns the result of ParseTfConfig().
absl::StatusOr<Cluster> ClusterFromEnvironment();

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CLUSTER_H_
