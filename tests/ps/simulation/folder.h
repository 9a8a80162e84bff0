// A folder of checkpoints that simulated servers share.

#ifndef PENSTOCK_TESTS_PS_SIMULATION_FOLDER_H_
#define PENSTOCK_TESTS_PS_SIMULATION_FOLDER_H_

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "ps/checkpoint/files.h"
#include "tests/ps/checkpoint/memory_files.h"

namespace penstock::ps {

// Files in memory, and the lock that guards them.
struct Folder {
  absl::Mutex mu;
  checkpoint::MemoryFiles files ABSL_GUARDED_BY(mu);
};

// One process's access to a folder. After the death of the process, no
// operation has an effect. Thread-safe.
class ProcessFiles final : public checkpoint::Files {
 public:
  explicit ProcessFiles(std::shared_ptr<Folder> folder)
      : state_(std::make_shared<State>()) {
    state_->folder = std::move(folder);
  }

  // Makes the process die after `operations` more operations. With 0, the
  // process dies at the next operation.
  void DieAfter(int operations) { state_->left = operations; }
  void Die() { state_->is_dead = true; }
  bool is_dead() const { return state_->is_dead; }

  absl::StatusOr<std::unique_ptr<checkpoint::WritableFile>> Create(
      absl::string_view path) override;
  absl::StatusOr<std::unique_ptr<checkpoint::ReadableFile>> Open(
      absl::string_view path) override;
  absl::Status MakeFolder(absl::string_view path) override;
  absl::StatusOr<std::vector<checkpoint::FolderEntry>> List(
      absl::string_view folder) override;
  absl::Status Rename(absl::string_view from, absl::string_view to) override;
  absl::Status Remove(absl::string_view path) override;
  absl::Status RemoveFolder(absl::string_view path) override;
  absl::Status SyncFolder(absl::string_view folder) override;
  absl::StatusOr<std::unique_ptr<checkpoint::FileLock>> Lock(
      absl::string_view path) override;

  // The state that open files share with this object.
  struct State {
    std::shared_ptr<Folder> folder;
    std::atomic<bool> is_dead{false};
    std::atomic<int> left{-1};  // operations until the death; -1: no end

    // Begins an operation. Returns ABORTED if the process is dead.
    absl::Status Begin();
  };

 private:
  const std::shared_ptr<State> state_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_TESTS_PS_SIMULATION_FOLDER_H_
