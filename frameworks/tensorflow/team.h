// The reductions of one group of tasks, in one order on all tasks.

#ifndef PENSTOCK_FRAMEWORKS_TENSORFLOW_TEAM_H_
#define PENSTOCK_FRAMEWORKS_TENSORFLOW_TEAM_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "collectives/group.h"
#include "collectives/reduction/reduction.h"
#include "frameworks/tensorflow/called_reductions.h"
#include "frameworks/tensorflow/team_line.h"
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
  // Keeps `in` and `out`. Released before `done` or `otherwise`, but later if
  // the reduction is cancelled while it runs.
  std::shared_ptr<const void> memory;
  // True after a cancellation, unless null. Set the flag before calling
  // Team::Cancel(), so that a Cancel() before Add() is not lost.
  std::shared_ptr<const std::atomic<bool>> cancelled;
  // Receives the result. Runs on the team's thread, or within Add(), Cancel()
  // or Abort().
  std::function<void(const absl::Status& status)> done;
  // Runs in place of `done` if the tasks form no group.
  std::function<void()> otherwise;
};

// TensorFlow runs independent reductions in any order, which differs between
// tasks. A group of ranks needs one order. Each rank therefore tells rank 0
// what it has called. Once all ranks have called a reduction, rank 0 broadcasts
// its key, as in Horovod. Each rank then votes, because it may have withdrawn
// its call meanwhile. If all agree, they run the reduction.
//
// Thus no rank waits for a reduction that another rank has not called, and a
// cancelled step takes part in no reduction of a later step. A waiting rank
// waits for all other ranks, and so notices their deaths.
//
//   state      event                     action                     next
//   kForming   the group is formed       tell rank 0 of all         kReducing
//   kForming   there will be no group    `otherwise` of all         kRefused
//   kForming   Abort()                   errors for all             kEnded
//   kEnded     the group is formed       leave                      kEnded
//   kReducing  Add()                     tell rank 0                kReducing
//   kReducing  Cancel()                  CANCELLED, tell rank 0     kReducing
//   kReducing  a rank votes no           wait again                 kReducing
//   kReducing  a reduction fails         errors for all, leave      kEnded
//   kReducing  a rank dies or leaves     errors for all, leave      kEnded
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

  // Makes a team, and its thread. The thread keeps the team alive until the
  // team has been refused or has ended. Returns the system's error if there is
  // no thread.
  static absl::StatusOr<std::shared_ptr<Team>> Start(Form form);

  Team() = default;
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  // Returns INVALID_ARGUMENT through `done` for a key of another size than 1 to
  // TeamLine::kMaxKeyBytes, and CANCELLED for a cancelled reduction. Waits for
  // rank 0 if thousands of calls are on their way there.
  void Add(Reduction reduction);
  // Ends a reduction with CANCELLED, if it has not ended. If the reduction is
  // already running, the other ranks get its result. Otherwise they wait until
  // this rank calls the key again. May wait like Add().
  void Cancel(const std::string& key);
  // Ends all pending reductions of all ranks. This rank's waiting reductions
  // end before this function returns. Does not wait. `why` is this rank's
  // error.
  void Abort(const absl::Status& why);

  struct Description {
    std::string state;  // "forming", "reducing", "refused" or "ended"
    std::string reason;
    uint64_t reductions = 0;  // successful ones
    uint64_t waiting = 0;     // this rank's calls that do not run yet
  };
  Description Describe() const;

 private:
  enum class State { kForming, kReducing, kRefused, kEnded };
  // A reduction that was added.
  struct Call {
    Reduction reduction;
    bool is_over = false;  // `done` has run, or is about to
  };
  using CallPtr = std::shared_ptr<Call>;

  void Run(const Form& form);
  void Refuse(const absl::Status& why);
  // Reduces until an error, which it returns.
  absl::Status Reduce(collectives::Group* group);
  absl::Status ReduceNext(collectives::Group* group);
  // Returns the key that rank 0 chooses. Moves the call to `running_`, if this
  // rank has not withdrawn it.
  absl::StatusOr<std::string> NextKey(collectives::Group* group);
  // On rank 0, waits for a reduction that all ranks have called, and removes
  // its calls. Returns the error of Abort(), or of Listen().
  absl::StatusOr<std::string> Choose();
  // Returns true if no rank has withdrawn its call. Otherwise undoes NextKey().
  absl::StatusOr<bool> Agree(collectives::Group* group, const std::string& key);
  void PutBack(const std::string& key);
  absl::Status RunCall(collectives::Group* group);
  // Receives the lines of a rank, on rank 0, until an error.
  void Listen(collectives::Group* group, int rank);
  absl::Status Hear(const TeamLineBytes& bytes, int rank)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Tells rank 0 of a call, or of its end. Call Send() afterwards.
  void Tell(TeamLine::Kind kind, const std::string& key)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Sends the lines for rank 0, in their order.
  void Send();
  // Ends a call, unless it is over.
  void Finish(const CallPtr& call, const absl::Status& status);
  void Finish(const std::list<CallPtr>& calls, const absl::Status& status);
  // Removes the oldest waiting call of a key, and returns it or null.
  CallPtr TakeWaiting(const std::string& key)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void End(const absl::Status& why);

  mutable base::Mutex mu_;
  std::condition_variable_any changed_;
  State state_ ABSL_GUARDED_BY(mu_) = State::kForming;
  absl::Status why_ ABSL_GUARDED_BY(mu_);      // in kRefused and kEnded
  absl::Status aborted_ ABSL_GUARDED_BY(mu_);  // an error after Abort()
  absl::Status deaf_ ABSL_GUARDED_BY(mu_);     // the first error of Listen()
  std::list<CallPtr> waiting_ ABSL_GUARDED_BY(mu_);  // by age
  CallPtr running_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<collectives::Group> group_ ABSL_GUARDED_BY(mu_);
  uint64_t reductions_ ABSL_GUARDED_BY(mu_) = 0;
  // On rank 0, in kReducing.
  std::unique_ptr<CalledReductions> called_ ABSL_GUARDED_BY(mu_);
  // On other ranks: for rank 0.
  std::deque<TeamLine> unsent_ ABSL_GUARDED_BY(mu_);
  base::Mutex send_mu_;  // held while a line is sent
};

}  // namespace tensorflow
}  // namespace penstock

#endif  // PENSTOCK_FRAMEWORKS_TENSORFLOW_TEAM_H_
