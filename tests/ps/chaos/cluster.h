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

// A cluster of ps_server and of workers. Each place of a server has its port,
// each rank one process at a time. Not thread-safe.
class ProcessCluster {
 public:
  // How a server is started. By default, as the operator should.
  struct How {
    bool restores = true;
    bool has_other_folder = false;
  };

  // `folder` gets checkpoints, records and logs.
  ProcessCluster(std::string folder, std::vector<Staleness> policies,
                 uint32_t workers);

  // Starts servers on ports of their own. Returns false on failure.
  bool FindPorts();
  void StartServer(size_t server, const How& how);
  void KillServer(size_t server) { servers_[server].child = nullptr; }
  // Kills all servers, and all workers if their number of servers was another.
  // Later there are `servers` places.
  void KillAllServers(size_t servers);
  void StartWorker(uint32_t rank);
  void KillWorker(uint32_t rank) { workers_[rank] = nullptr; }
  // Lets a worker end after its step. Returns its exit code, -1 if there is
  // none.
  int FinishWorker(uint32_t rank);
  void ResumeAll();

  size_t servers() const { return servers_.size(); }
  uint32_t workers() const { return static_cast<uint32_t>(workers_.size()); }
  // Null: no process.
  process::Child* server(size_t at) { return servers_[at].child.get(); }
  process::Child* worker(uint32_t rank) { return workers_[rank].get(); }
  // Returns true if each server is alive and was started as it should.
  bool AreServersProper();
  std::vector<std::string> addresses() const;

  // Returns the pushes of all workers.
  std::vector<RecordedPush> Pushes() const;
  size_t CountAcknowledged(uint32_t rank) const;
  // Returns the last notes of the workers of a rank, for people.
  std::string NotesOf(uint32_t rank) const;

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
  std::vector<std::vector<std::string>> records_;  // paths, by rank
  uint64_t started_ = 0;                           // workers
  int log_ = -1;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_TESTS_PS_CHAOS_CLUSTER_H_
