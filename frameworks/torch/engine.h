// A process group's operations and the threads that run them, without PyTorch.

#ifndef PENSTOCK_FRAMEWORKS_TORCH_ENGINE_H_
#define PENSTOCK_FRAMEWORKS_TORCH_ENGINE_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "collectives/group.h"
#include "frameworks/torch/mailbox.h"
#include "frameworks/torch/rendezvous.h"
#include "frameworks/torch/task_queue.h"
#include "frameworks/torch/workers.h"
#include "transport/base/mutex.h"

namespace penstock {
namespace pytorch {

// A group, the order of its collective operations, and its messages.
// Thread-safe.
class Engine {
 public:
  // Opens the mailboxes of the group. All ranks call this.
  static absl::StatusOr<std::unique_ptr<Engine>> Start(FormedGroup formed);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  // Aborts pending operations, waits for their end, and leaves the group. In
  // the child of a fork, does nothing.
  ~Engine();

  // Returns null after Close(). The group is not destroyed while the result
  // lives.
  std::shared_ptr<collectives::Group> group();

  Mailbox* mailbox() { return mailbox_.get(); }
  Workers* workers() { return workers_.get(); }

  // Returns the queue in which collective operations run.
  const std::shared_ptr<TaskQueue>& collectives() const { return collectives_; }

  // Returns 0, 1, ...: the number of the next window of this group.
  uint32_t NextWindow() { return windows_++; }

  // Returns true in the child of a fork, which has no threads and must not use
  // the group.
  bool forked() const;

  // Ends all operations, on all ranks, with CANCELLED. Does not wait.
  void Abort();

  // Waits for the collective operations that have been called, ends pending
  // messages, and leaves the group.
  void Close();

 private:
  explicit Engine(std::unique_ptr<collectives::Group> group);

  const uint32_t fork_count_;
  std::unique_ptr<Workers> workers_;
  std::shared_ptr<TaskQueue> collectives_;
  std::unique_ptr<Mailbox> mailbox_;
  std::atomic<uint32_t> windows_{0};  // made so far
  base::Mutex mu_;
  std::shared_ptr<collectives::Group> group_ ABSL_GUARDED_BY(mu_);
};

}  // namespace pytorch
}  // namespace penstock

#endif  // PENSTOCK_FRAMEWORKS_TORCH_ENGINE_H_
