// The reductions of one group of tasks, in one order on all tasks.

#ifndef PENSTOCK_FRAMEWORKS_TENSORFLOW_TEAM_H_
#define PENSTOCK_FRAMEWORKS_TENSORFLOW_TEAM_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "collectives/group.h"
#include "collectives/reduction/reduction.h"
#include "tensor_service/dtype.h"
#include "transport/base/mutex.h"

namespace penstock {
namespace tensorflow {

// One all_reduce of this task.
struct Reduction {
  // Equal on all tasks of the team. Reductions that run at the same time have
  // different keys.
  std::string key;
  collectives::ReduceOp op = collectives::ReduceOp::kSum;
  tensor::DType dtype = tensor::DType::kF32;
  const void* in = nullptr;  // equal to `out`, or not overlapping
  void* out = nullptr;
  int64_t count = 0;
  // If not null, true after a cancellation. Set the flag before calling
  // Team::Cancel(), so that a Cancel() before Add() is not lost.
  std::shared_ptr<const std::atomic<bool>> cancelled;
  // Receives the result. Runs on the team's thread, or within Add(), Cancel()
  // or Abort().
  std::function<void(const absl::Status& status)> done;
  // Runs in place of `done` if the tasks form no group.
  std::function<void()> otherwise;
};

// TensorFlow runs reductions that do not depend on each other in any order,
// which differs by task. A group of ranks needs one order. Rank 0 therefore
// chooses the order: before each reduction it broadcasts the key, and each
// other rank waits until it has a reduction with this key.
//
//   state      event                     action                     next
//   kForming   the group is formed       -                          kReducing
//   kForming   there will be no group    `otherwise` of all         kRefused
//   kForming   Abort()                   errors for all             kEnded
//   kEnded     the group is formed       leave                      kEnded
//   kReducing  a reduction fails         errors for all, leave      kEnded
//   kReducing  Abort()                   errors for those that      (fails)
//                                        wait, abort the group
//   kRefused   Add()                     its `otherwise`            kRefused
//   kEnded     Add()                     the error                  kEnded
//
// The team's thread makes all transitions, except Abort() in kForming.
// Functions of reductions run without a lock. Thread-safe.
class Team : public std::enable_shared_from_this<Team> {
 public:
  // Forms the group. May block.
  using Form =
      std::function<absl::StatusOr<std::unique_ptr<collectives::Group>>()>;

  // Limits the bytes of a key.
  static constexpr size_t kMaxKeyBytes = 255;

  // Makes a team, and its thread. The thread keeps the team alive until the
  // team has been refused or has ended. Returns the system's error if there is
  // no thread.
  static absl::StatusOr<std::shared_ptr<Team>> Start(Form form);

  Team() = default;
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  // Returns INVALID_ARGUMENT through `done` for a key of another size than 1 to
  // kMaxKeyBytes, and CANCELLED for a cancelled reduction.
  void Add(Reduction reduction);
  // Ends a reduction with CANCELLED, if it has not ended. If it runs, this ends
  // the team on all ranks. Does not wait.
  void Cancel(const std::string& key);
  // Ends all reductions of all ranks, except those that have ended. Reductions
  // that wait on this rank end before this function returns. Does not wait.
  // `why` is this rank's error.
  void Abort(const absl::Status& why);

  struct Description {
    std::string state;  // "forming", "reducing", "refused" or "ended"
    std::string reason;
    uint64_t reductions = 0;  // the successful ones
  };
  Description Describe() const;

 private:
  enum class State { kForming, kReducing, kRefused, kEnded };

  void Run(const Form& form);
  void Refuse(const absl::Status& why);
  void Reduce(const std::shared_ptr<collectives::Group>& group);
  absl::Status ReduceNext(collectives::Group* group);
  // Waits for a reduction with `key`, or, if `key` is empty, for any, which
  // then runs. Returns the error of Abort().
  absl::StatusOr<Reduction> Await(const std::string& key);
  absl::optional<Reduction> Find(const std::string& key)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void End(const absl::Status& why);

  mutable base::Mutex mu_;
  std::condition_variable_any changed_;
  State state_ ABSL_GUARDED_BY(mu_) = State::kForming;
  absl::Status why_ ABSL_GUARDED_BY(mu_);      // in kRefused and kEnded
  absl::Status aborted_ ABSL_GUARDED_BY(mu_);  // an error after Abort()
  std::list<Reduction> waiting_ ABSL_GUARDED_BY(mu_);
  std::string running_ ABSL_GUARDED_BY(mu_);  // a key, or nothing
  std::shared_ptr<collectives::Group> group_ ABSL_GUARDED_BY(mu_);
  uint64_t reductions_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace tensorflow
}  // namespace penstock

#endif  // PENSTOCK_FRAMEWORKS_TENSORFLOW_TEAM_H_
