#include "ps/cluster.h"

#include <stdlib.h>  // secure_getenv

#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace penstock::ps {
namespace {

using Json = nlohmann::json;

absl::Status Bad(absl::string_view field, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", what));
}

// The addresses of each job as configured, before the chief becomes a worker.
struct Jobs {
  std::vector<std::string> servers;
  std::vector<std::string> chiefs;
  std::vector<std::string> workers;
  std::vector<std::string> evaluators;

  std::vector<std::string>* Find(absl::string_view type) {
    if (type == "ps") return &servers;
    if (type == "chief" || type == "master") return &chiefs;
    if (type == "worker") return &workers;
    if (type == "evaluator") return &evaluators;
    return nullptr;
  }
};

Role RoleOf(absl::string_view type) {
  if (type == "ps") return Role::kServer;
  if (type == "evaluator") return Role::kEvaluator;
  return Role::kWorker;
}

// Returns the cluster. As in TensorFlow, `jobs` need not list an evaluator.
absl::StatusOr<Cluster> Assemble(Jobs jobs, absl::string_view type,
                                 int64_t index) {
  const std::vector<std::string>* job = jobs.Find(type);
  if (job == nullptr) {
    return Bad("task.type", absl::StrCat("'", type,
                                         "' is none of ps, worker, chief, "
                                         "evaluator"));
  }
  bool unlisted_evaluator =
      type == "evaluator" && jobs.evaluators.empty() && index == 0;
  if (index < 0 ||
      (static_cast<size_t>(index) >= job->size() && !unlisted_evaluator)) {
    return Bad("task.index", absl::StrCat(index, " is out of range: ", type,
                                          " has ", job->size(), " tasks"));
  }
  if (jobs.servers.empty()) return Bad("cluster.ps", "no parameter servers");
  if (jobs.chiefs.size() > 1) return Bad("cluster.chief", "more than one");
  Cluster cluster;
  cluster.role = RoleOf(type);
  cluster.index = static_cast<size_t>(index);
  if (type == "worker") cluster.index += jobs.chiefs.size();
  cluster.servers = std::move(jobs.servers);
  cluster.workers = std::move(jobs.chiefs);
  for (std::string& worker : jobs.workers) {
    cluster.workers.push_back(std::move(worker));
  }
  cluster.evaluators = std::move(jobs.evaluators);
  if (cluster.workers.empty()) return Bad("cluster.worker", "no workers");
  return cluster;
}

absl::Status ReadJob(const std::string& type, const Json& addresses,
                     Jobs* jobs) {
  std::string field = absl::StrCat("cluster.", type);
  std::vector<std::string>* job = jobs->Find(type);
  if (job == nullptr) return Bad(field, "unknown job");
  if (!addresses.is_array()) return Bad(field, "not a list of addresses");
  for (const Json& address : addresses) {
    if (!address.is_string() || address.get_ref<const std::string&>().empty()) {
      return Bad(absl::StrCat(field, "[", job->size(), "]"), "not an address");
    }
    job->push_back(address.get<std::string>());
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> ReadIndex(const Json& task) {
  auto index = task.find("index");
  if (index == task.end()) return 0;
  if (!index->is_number_integer()) return Bad("task.index", "not an integer");
  if (index->is_number_unsigned() &&
      index->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) {
    return Bad("task.index", "out of range");
  }
  return index->get<int64_t>();
}

}  // namespace

const std::vector<std::string>& Cluster::peers() const {
  switch (role) {
    case Role::kServer:
      return servers;
    case Role::kWorker:
      return workers;
    case Role::kEvaluator:
      return evaluators;
  }
  return workers;
}

absl::StatusOr<Cluster> ParseTfConfig(absl::string_view json) {
  Json root = Json::parse(json.begin(), json.end(), /*cb=*/nullptr,
                          /*allow_exceptions=*/false);
  if (root.is_discarded()) return Bad("TF_CONFIG", "not valid JSON");
  if (!root.is_object()) return Bad("TF_CONFIG", "not a JSON object");
  auto cluster = root.find("cluster");
  if (cluster == root.end() || !cluster->is_object()) {
    return Bad("cluster", "missing or not an object");
  }
  Jobs jobs;
  for (const auto& job : cluster->items()) {
    absl::Status status = ReadJob(job.key(), job.value(), &jobs);
    if (!status.ok()) return status;
  }
  auto task = root.find("task");
  if (task == root.end() || !task->is_object()) {
    return Bad("task", "missing or not an object");
  }
  auto type = task->find("type");
  if (type == task->end() || !type->is_string()) {
    return Bad("task.type", "missing or not a string");
  }
  absl::StatusOr<int64_t> index = ReadIndex(*task);
  if (!index.ok()) return index.status();
  return Assemble(std::move(jobs), type->get_ref<const std::string&>(), *index);
}

absl::StatusOr<Cluster> ClusterFromEnvironment() {
  const char* json = secure_getenv("TF_CONFIG");
  if (json == nullptr || *json == '\0') {
    return absl::NotFoundError("TF_CONFIG is not set");
  }
  return ParseTfConfig(json);
}

}  // namespace penstock::ps
