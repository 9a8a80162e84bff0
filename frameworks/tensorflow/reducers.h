// The teams of a task, which run TensorFlow's reductions.

#ifndef PENSTOCK_FRAMEWORKS_TENSORFLOW_REDUCERS_H_
#define PENSTOCK_FRAMEWORKS_TENSORFLOW_REDUCERS_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "frameworks/tensorflow/team.h"
#include "frameworks/tensorflow/team_meeting.h"
#include "tensorflow/core/distributed_runtime/worker_cache.h"
#include "tensorflow/core/framework/collective.h"
#include "transport/base/mutex.h"

namespace penstock {
namespace tensorflow {

// The name under which TensorFlow finds our implementation of all_reduce.
constexpr char kReducer[] = "PenstockReduce";

// Limits the teams of a task that have not ended. Each has a thread or more,
// and 1.3 MiB of shared memory.
constexpr int kMaxTeams = 16;

// Returns true if a team can run this reduction: on CPUs, with one device for
// each task, and with a type and an operation that Penstock supports. The
// result is the same on all tasks.
bool CanReduce(const ::tensorflow::CollectiveParams& params);

// The teams of one task. Thread-safe. Lives as long as the process.
class Reducers {
 public:
  // Answers other ranks of teams whose rank 0 is this task.
  TeamMeetings* meetings() { return &meetings_; }

  // Ends all teams, because TensorFlow changes the cluster or makes another
  // strategy. All tasks do so together. Returns the number of the new
  // generation of teams.
  int BeginGeneration();

  // Returns the team of the params' group. Makes the team for the first
  // reduction: asks the tasks over their data planes. Uses `workers` only until
  // it returns. Returns ABORTED for an earlier generation, and the system's
  // error if there is no thread for the team.
  absl::StatusOr<std::shared_ptr<Team>> TeamOf(
      const ::tensorflow::CollectiveParams& params,
      ::tensorflow::WorkerCacheInterface* workers, int generation);

  // Ends all teams, on all tasks. Does nothing for an earlier generation, whose
  // teams have ended.
  void Abort(int generation, const absl::Status& why);
  // Ends the teams of all generations, on all tasks.
  void AbortAll(const absl::Status& why);

  // Describes the teams for people, by name.
  std::map<std::string, Team::Description> Describe() const;

 private:
  // By name.
  using Teams = std::map<std::string, std::shared_ptr<Team>>;

  TeamMeetings meetings_;
  absl::StatusOr<std::shared_ptr<Team>> StartTeam(
      const ::tensorflow::CollectiveParams& params,
      ::tensorflow::WorkerCacheInterface* workers, const std::string& name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  int LiveTeams() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  static void AbortTeams(const Teams& teams, const absl::Status& why);

  mutable base::Mutex mu_;
  int generation_ ABSL_GUARDED_BY(mu_) = 0;
  Teams teams_ ABSL_GUARDED_BY(mu_);
};

// Makes the manager of a server's collectives. Works like TensorFlow's own
// manager, but runs reductions by `reducers` if the tasks can form a team.
// `workers` and `reducers` must outlive the manager.
::tensorflow::CollectiveExecutorMgrInterface* NewCollectiveManager(
    const ::tensorflow::ConfigProto& config,
    const ::tensorflow::DeviceMgr* devices,
    ::tensorflow::WorkerCacheInterface* workers, const std::string& task,
    Reducers* reducers);

}  // namespace tensorflow
}  // namespace penstock

#endif  // PENSTOCK_FRAMEWORKS_TENSORFLOW_REDUCERS_H_
