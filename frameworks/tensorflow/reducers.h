// The teams of a task. TensorFlow's reductions run in teams.

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

// The name by which TensorFlow looks up our implementation of all_reduce.
constexpr char kReducer[] = "PenstockReduce";

// Returns true if a team can run this reduction: on CPUs, with one device for
// each task, and with a type and an operation that Penstock's reductions have.
// All tasks come to the same conclusion.
bool CanReduce(const ::tensorflow::CollectiveParams& params);

// The teams of one task. Thread-safe. Lives as long as the process.
class Reducers {
 public:
  // Answers other ranks of teams whose rank 0 is this task.
  TeamMeetings* meetings() { return &meetings_; }

  // Returns the team of the params' group. Makes the team for the first
  // reduction: asks the tasks over their data planes. Returns the system's
  // error if there is no thread for the team.
  absl::StatusOr<std::shared_ptr<Team>> TeamOf(
      const ::tensorflow::CollectiveParams& params,
      ::tensorflow::WorkerCacheInterface* workers);

  // Ends all teams, on all tasks.
  void Abort(const absl::Status& why);

  // Describes the teams for people, by name.
  std::map<std::string, Team::Description> Describe() const;

 private:
  TeamMeetings meetings_;
  mutable base::Mutex mu_;
  std::map<std::string, std::shared_ptr<Team>> teams_ ABSL_GUARDED_BY(mu_);
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
