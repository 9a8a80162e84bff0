#include "frameworks/tensorflow/reducers.h"

#include <algorithm>
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

// Returns a name that is equal on all tasks of a group. A restarted task has
// another incarnation, and therefore another name.
std::string NameOf(const CollGroupParams& group, int generation) {
  std::string name = absl::StrCat("group ", group.group_key, " of");
  for (const auto& member : group.members) {
    absl::StrAppend(&name, " ", member.task, "/", member.device.incarnation());
  }
  if (generation > 1) absl::StrAppend(&name, ", generation ", generation);
  return name;
}

// Another task of a team.
struct Peer {
  std::string task;
  std::shared_ptr<RemoteWorker> worker;  // null if TensorFlow knows none
};

// Returns a peer whose worker stays alive if TensorFlow destroys `workers`.
Peer PeerOf(const std::string& task, WorkerCacheInterface* workers) {
  WorkerInterface* const worker = workers->GetOrCreateWorker(task);
  auto* const remote = dynamic_cast<RemoteWorker*>(worker);
  if (remote == nullptr) {
    if (worker != nullptr) workers->ReleaseWorker(task, worker);
    return {task, nullptr};
  }
  // WorkerCache::ReleaseWorker() deletes such a worker, too.
  return {task, std::shared_ptr<RemoteWorker>(remote)};
}

// Sends a request to a task over its data plane. `answered` gets
// FAILED_PRECONDITION if the task has no data plane.
void Ask(const Peer& peer, rpc::Request request,
         std::function<void(Answer)> answered) {
  if (peer.worker == nullptr) {
    return answered(absl::FailedPreconditionError(
        absl::StrCat(peer.task, " is not known to this server")));
  }
  peer.worker->Ask(std::move(request),
                   [worker = peer.worker, answered = std::move(answered)](
                       Answer answer) { answered(std::move(answer)); });
}

// The members of one team, as one task knows them.
struct Members {
  std::string team;
  std::vector<std::string> tasks;  // by rank
  int rank = 0;
  // On rank 0 all other tasks by rank, on other ranks that of rank 0.
  std::vector<Peer> peers;
  int ranks() const { return static_cast<int>(tasks.size()); }
};

Members MembersOf(const CollectiveParams& params, WorkerCacheInterface* workers,
                  const std::string& team) {
  Members members;
  members.team = team;
  members.rank = params.default_rank;
  for (const auto& member : params.group.members) {
    const auto rank = static_cast<int>(members.tasks.size());
    members.tasks.push_back(member.task);
    if ((members.rank == 0) != (rank == 0)) {
      members.peers.push_back(PeerOf(member.task, workers));
    }
  }
  return members;
}

// Forms the team's group as rank 0. If a task has no data plane or no teams,
// finds out immediately, without waiting for the timeout.
Formed LeadTeam(const Members& members, TeamMeetings* meetings) {
  for (const Peer& peer : members.peers) {
    rpc::Request question;
    question.method = kHasTeams;
    question.timeout = kMeetingTime;
    Ask(peer, std::move(question),
        [meetings, team = members.team, task = peer.task](const Answer& yes) {
          if (yes.ok()) return;
          meetings->Refuse(team, absl::FailedPreconditionError(absl::StrCat(
                                     task, ": ", yes.status().message())));
        });
  }
  return meetings->Lead(members.team, members.ranks());
}

Formed JoinTeam(const Members& members) {
  rpc::Request request;
  request.method = kJoinTeam;
  request.metadata = ToText(JoinerHere(members.team, members.rank));
  // Longer than rank 0 waits for others.
  request.timeout = 2 * kMeetingTime;
  auto promise = std::make_shared<std::promise<Answer>>();
  Ask(members.peers.front(), std::move(request),
      [promise](Answer answer) { promise->set_value(std::move(answer)); });
  // Limits the wait here, too, because the request's own timeout starts only
  // after the peer has sent the port of its data plane.
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

bool IsLive(const std::shared_ptr<Team>& team) {
  const std::string state = team->Describe().state;
  return state == "forming" || state == "reducing";
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

int Reducers::BeginGeneration() {
  Teams teams;
  int generation;
  {
    // Does both under one lock, so that no step makes a team in between.
    base::MutexLock lock(&mu_);
    teams = teams_;
    generation = ++generation_;
  }
  AbortTeams(teams, absl::AbortedError(
                        "the cluster has changed, or the program makes another "
                        "strategy"));
  return generation;
}

absl::StatusOr<std::shared_ptr<Team>> Reducers::TeamOf(
    const CollectiveParams& params, WorkerCacheInterface* workers,
    int generation) {
  const std::string name = NameOf(params.group, generation);
  base::MutexLock lock(&mu_);
  const auto found = teams_.find(name);
  if (found != teams_.end()) return found->second;
  if (generation != generation_) {
    return absl::AbortedError("the cluster has changed since this step began");
  }
  absl::StatusOr<std::shared_ptr<Team>> team = StartTeam(params, workers, name);
  if (team.ok()) teams_[name] = *team;
  return team;
}

int Reducers::LiveTeams() const {
  return static_cast<int>(
      std::count_if(teams_.begin(), teams_.end(),
                    [](const auto& entry) { return IsLive(entry.second); }));
}

absl::StatusOr<std::shared_ptr<Team>> Reducers::StartTeam(
    const CollectiveParams& params, WorkerCacheInterface* workers,
    const std::string& name) {
  absl::Status refused;
  if (LiveTeams() >= kMaxTeams) {
    refused = absl::ResourceExhaustedError(
        absl::StrCat("a task has ", kMaxTeams, " groups in use already"));
    meetings_.Refuse(name, refused);
  }
  return Team::Start([this, refused,
                      members = MembersOf(params, workers, name)]() -> Formed {
    Formed formed = !refused.ok()       ? Formed(refused)
                    : members.rank == 0 ? LeadTeam(members, &meetings_)
                                        : JoinTeam(members);
    base::LogInfo(absl::StrCat(
        "TensorFlow's all_reduce of ", members.team, " is ",
        formed.ok()
            ? std::string("Penstock's, over shared memory")
            : absl::StrCat("TensorFlow's ring: ", formed.status().message())));
    return formed;
  });
}

void Reducers::Abort(int generation, const absl::Status& why) {
  Teams teams;
  {
    base::MutexLock lock(&mu_);
    if (generation != generation_) return;
    teams = teams_;
  }
  AbortTeams(teams, why);
}

void Reducers::AbortAll(const absl::Status& why) {
  Teams teams;
  {
    base::MutexLock lock(&mu_);
    teams = teams_;
  }
  AbortTeams(teams, why);
}

void Reducers::AbortTeams(const Teams& teams, const absl::Status& why) {
  for (const auto& entry : teams) entry.second->Abort(why);
}

std::map<std::string, Team::Description> Reducers::Describe() const {
  std::map<std::string, Team::Description> teams;
  base::MutexLock lock(&mu_);
  for (const auto& entry : teams_) {
    teams[entry.first] = entry.second->Describe();
  }
  return teams;
}

}  // namespace tensorflow
}  // namespace penstock
