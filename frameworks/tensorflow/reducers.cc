#include "frameworks/tensorflow/reducers.h"

#include <chrono>
#include <future>
#include <utility>

#include "absl/strings/str_cat.h"
#include "collectives/host/meeting.h"
#include "frameworks/tensorflow/remote_worker.h"
#include "frameworks/tensorflow/team_values.h"
#include "frameworks/tensorflow/worker.h"
#include "transport/base/log.h"

namespace penstock {
namespace tensorflow {
namespace {

using ::tensorflow::CollectiveParams;
using ::tensorflow::CollGroupParams;
using ::tensorflow::WorkerCacheInterface;
using ::tensorflow::WorkerInterface;
using Answer = absl::StatusOr<rpc::Response>;
using Formed = absl::StatusOr<std::unique_ptr<collectives::Group>>;

// Equal on all tasks of a group. A task that was started again has another
// incarnation, and so another team.
std::string NameOf(const CollGroupParams& group) {
  std::string name = absl::StrCat("group ", group.group_key, " of");
  for (const auto& member : group.members) {
    absl::StrAppend(&name, " ", member.task, "/", member.device.incarnation());
  }
  return name;
}

// Asks a task over its data plane. `answered` gets FAILED_PRECONDITION if the
// task has none.
void Ask(WorkerCacheInterface* workers, const std::string& task,
         rpc::Request request, std::function<void(Answer)> answered) {
  WorkerInterface* const worker = workers->GetOrCreateWorker(task);
  auto* const remote = dynamic_cast<RemoteWorker*>(worker);
  if (remote == nullptr) {
    if (worker != nullptr) workers->ReleaseWorker(task, worker);
    return answered(absl::FailedPreconditionError(
        absl::StrCat(task, " is not known to this server")));
  }
  remote->Ask(std::move(request),
              [workers, task, remote, answered](const Answer& answer) {
                workers->ReleaseWorker(task, remote);
                answered(answer);
              });
}

// The members of one team, as one task knows them.
struct Members {
  std::string team;
  std::vector<std::string> tasks;  // by rank
  int rank = 0;
  int ranks() const { return static_cast<int>(tasks.size()); }
};

// Forms the team's group as rank 0. Learns at once if a task has no data plane.
Formed LeadTeam(const Members& members, WorkerCacheInterface* workers,
                TeamMeetings* meetings) {
  for (int rank = 1; rank < members.ranks(); ++rank) {
    rpc::Request ping;
    ping.method = kPing;
    ping.timeout = kMeetingTime;
    Ask(workers, members.tasks[rank], std::move(ping),
        [meetings, team = members.team,
         task = members.tasks[rank]](const Answer& pong) {
          if (pong.ok()) return;
          meetings->Refuse(team, absl::FailedPreconditionError(absl::StrCat(
                                     task, ": ", pong.status().message())));
        });
  }
  return meetings->Lead(members.team, members.ranks());
}

Formed JoinTeam(const Members& members, WorkerCacheInterface* workers) {
  rpc::Request request;
  request.method = kJoinTeam;
  request.metadata = ToText(JoinerHere(members.team, members.rank));
  // Longer than rank 0 waits for others.
  request.timeout = 2 * kMeetingTime;
  auto promise = std::make_shared<std::promise<Answer>>();
  Ask(workers, members.tasks[0], std::move(request),
      [promise](Answer answer) { promise->set_value(std::move(answer)); });
  // Limits the wait here, too, because the request's own timeout begins only
  // after the peer has told the port of its data plane.
  std::future<Answer> answered = promise->get_future();
  if (answered.wait_for(absl::ToChronoMilliseconds(
          2 * kMeetingTime + absl::Seconds(1))) != std::future_status::ready) {
    return absl::DeadlineExceededError(
        absl::StrCat(members.tasks[0], " has not answered"));
  }
  const Answer answer = answered.get();
  if (!answer.ok()) return answer.status();
  return AcceptInvitation(answer->metadata, members.rank, members.ranks());
}

}  // namespace

bool CanReduce(const CollectiveParams& params) {
  const CollGroupParams& group = params.group;
  return params.instance.type == ::tensorflow::REDUCTION_COLLECTIVE &&
         params.instance.impl_details.collective_name == "RingReduce" &&
         group.device_type == ::tensorflow::DEVICE_CPU &&
         group.group_size > 1 &&
         group.group_size <= collectives::kMaxHostRanks &&
         group.num_tasks == group.group_size && params.final_op == nullptr &&
         params.merge_op != nullptr &&
         ReduceOpOf(params.merge_op->type_string()).has_value() &&
         TypeOf(params.instance.data_type).has_value();
}

absl::StatusOr<std::shared_ptr<Team>> Reducers::TeamOf(
    const CollectiveParams& params, WorkerCacheInterface* workers) {
  Members members;
  members.team = NameOf(params.group);
  members.rank = params.default_rank;
  base::MutexLock lock(&mu_);
  std::shared_ptr<Team>& team = teams_[members.team];
  if (team != nullptr) return team;
  for (const auto& member : params.group.members) {
    members.tasks.push_back(member.task);
  }
  auto started = Team::Start([this, members, workers]() -> Formed {
    Formed formed = members.rank == 0 ? LeadTeam(members, workers, &meetings_)
                                      : JoinTeam(members, workers);
    base::LogInfo(absl::StrCat(
        "TensorFlow's all_reduce of ", members.team, " is ",
        formed.ok()
            ? std::string("Penstock's, over shared memory")
            : absl::StrCat("TensorFlow's ring: ", formed.status().message())));
    return formed;
  });
  if (!started.ok()) return started.status();
  team = *std::move(started);
  return team;
}

void Reducers::Abort(const absl::Status& why) {
  std::vector<std::shared_ptr<Team>> teams;
  {
    base::MutexLock lock(&mu_);
    for (const auto& entry : teams_) {
      if (entry.second != nullptr) teams.push_back(entry.second);
    }
  }
  for (const auto& team : teams) team->Abort(why);
}

std::map<std::string, Team::Description> Reducers::Describe() const {
  std::map<std::string, Team::Description> teams;
  base::MutexLock lock(&mu_);
  for (const auto& entry : teams_) {
    if (entry.second != nullptr) {
      teams[entry.first] = entry.second->Describe();
    }
  }
  return teams;
}

}  // namespace tensorflow
}  // namespace penstock
