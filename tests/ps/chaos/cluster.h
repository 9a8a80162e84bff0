// Servers and workers as processes, which a test starts, stops and kills.

#ifndef PENSTOCK_TESTS_PS_CHAOS_CLUSTER_H_
#define PENSTOCK_TESTS_PS_CHAOS_CLUSTER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/process/child.h"
#include "tests/ps/chaos/record.h"
#include "tests/ps/training/training.h"

namespace penstock::ps {

inline constexpr size_t kMostServers = 3;

// Returns a text for people: the logs of all processes of a cluster, and the
// last note of each worker. `folder` is the cluster's. Any thread may call this
// function.
std::string LogsIn(const std::string& folder);

// A cluster of ps_server and worker processes. Each server has a fixed port.
// Each rank has at most one process at a time. Not thread-safe.
class ProcessCluster {
 public:
  // The way in which a server is started. The default is the correct way.
  struct How {
    bool restores = true;
    bool has_other_folder = false;
  };

  // `folder` is the folder for checkpoints, records and logs.
  ProcessCluster(std::string folder, std::vector<Staleness> policies,
                 uint32_t workers);

  // Finds a free port for each server, and starts the servers. Returns false on
  // failure.
  bool FindPorts();
  void StartServer(size_t server, const How& how);
  void KillServer(size_t server) { servers_[server].child = nullptr; }
  // Kills all servers. The cluster then has `servers` servers. If that number
  // has changed, also kills all workers.
  void KillAllServers(size_t servers);
  void StartWorker(uint32_t rank);
  void KillWorker(uint32_t rank) { workers_[rank] = nullptr; }
  // Makes a worker end after its current step. Returns its exit code, or -1 if
  // there is no such worker.
  int FinishWorker(uint32_t rank);
  void ResumeAll();

  size_t servers() const { return servers_.size(); }
  uint32_t workers() const { return static_cast<uint32_t>(workers_.size()); }
  // Return the process of a server or a worker; null if there is none.
  process::Child* server(size_t at) { return servers_[at].child.get(); }
  process::Child* worker(uint32_t rank) { return workers_[rank].get(); }
  // Returns true if each server is alive and was started in the correct way.
  bool AreServersProper();
  std::vector<std::string> addresses() const;

  // Return what all workers, or the workers of one rank, have recorded.
  std::vector<RecordedPush> Pushes();
  size_t CountAcknowledged(uint32_t rank);

 private:
  struct ServerPlace {
    std::unique_ptr<process::Child> child;
    How how;
  };

  const std::string folder_;
  const std::vector<Staleness> policies_;
  std::vector<std::string> ports_;  // addresses, by place
  std::vector<ServerPlace> servers_;
  std::vector<std::unique_ptr<process::Child>> workers_;
  std::vector<std::vector<RecordReader>> records_;  // by rank
  uint64_t started_ = 0;                            // workers
  int log_ = -1;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_TESTS_PS_CHAOS_CLUSTER_H_
