// The servers of a simulated cluster, and their folders.

#ifndef PENSTOCK_TESTS_PS_SIMULATION_SERVERS_H_
#define PENSTOCK_TESTS_PS_SIMULATION_SERVERS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "tests/ps/simulation/folder.h"
#include "tests/ps/simulation/ledger.h"
#include "tests/ps/simulation/mail.h"
#include "tests/ps/simulation/node.h"

namespace penstock::ps {

// The server slots of the cluster. A slot has a process or is empty. Used by
// one thread, while all other threads wait.
class Servers {
 public:
  // The way in which a process is started. The default is the correct way.
  struct How {
    bool restores = true;
    bool has_other_folder = false;
  };

  Servers(Mail* mail, size_t policies, uint32_t workers, size_t max_held_bytes)
      : mail_(mail),
        policies_(policies),
        workers_(workers),
        max_held_bytes_(max_held_bytes) {}

  size_t size() const { return nodes_.size(); }
  Node* at(size_t server) const { return nodes_[server].get(); }
  bool all_up() const;
  // Returns true if all processes were started in the correct way.
  bool all_proper() const;
  uint64_t deaths() const { return deaths_; }

  void Start(size_t server, const How& how);
  void Kill(size_t server);
  // Removes the processes that have died during an operation on their files.
  void BuryDead();
  // Cancels all deaths that are still planned.
  void Spare();
  // Kills all processes. The cluster then has `servers` slots.
  void KillAll(size_t servers);

  // Removes everything from the main folder that was not synced. All servers
  // must be dead.
  void LosePower(unsigned seed);
  // Removes everything in the main folder. All servers must be dead.
  void LoseFolder();
  // Returns the manifest of a cut in the main folder, or an error.
  absl::StatusOr<checkpoint::Manifest> ManifestOf(const CutId& cut);
  bool IsInMainFolder(size_t server) const;

  // Returns the training that all servers have. Returns nullopt if they have
  // none, or different ones.
  absl::optional<Life> CommonLife() const;
  // Returns a text with the servers' trainings and cuts, for people.
  std::string Describe() const;
  // Returns the dense values and the rows of `pushes`. Returns nullopt if a
  // server has no values.
  absl::optional<Values> Read(const std::map<uint64_t, Push>& pushes) const;
  // Returns a description of each server that holds more gradients than it may.
  std::vector<std::string> CheckMemory() const;

 private:
  bool ReadServer(size_t server, const std::map<uint64_t, Push>& pushes,
                  Values* values) const;

  Mail* const mail_;
  const size_t policies_;
  const uint32_t workers_;
  const size_t max_held_bytes_;
  std::shared_ptr<Folder> main_ = std::make_shared<Folder>();
  std::shared_ptr<Folder> other_ = std::make_shared<Folder>();
  uint64_t started_ = 0;
  uint64_t deaths_ = 0;
  std::vector<std::unique_ptr<Node>> nodes_;  // null: no process
};

}  // namespace penstock::ps

#endif  // PENSTOCK_TESTS_PS_SIMULATION_SERVERS_H_
