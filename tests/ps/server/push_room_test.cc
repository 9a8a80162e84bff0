// Simulates the pushes of a server with a small limit on held gradients, for
// any sizes of gradients. Checks that the limit holds, that workers continue,
// and that a training is ended only if it could not continue.
//
// push_room_test [--seeds=N] [--first=S] runs more seeds, or repeats one.

#include "ps/server/push_room.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/ps/seeds.h"

namespace penstock::ps {
namespace {

constexpr uint64_t kSeeds = 3000;
constexpr int kActs = 150;
constexpr int kFairRounds = 1000;
constexpr uint64_t kFairSteps = 4;
constexpr size_t kIdBytes = sizeof(uint64_t);
const absl::Time kNow = absl::UnixEpoch();  // no lease and no wait ends

using Verdict = Coordinator::Verdict;

Gradients GradientsOf(size_t ids) {
  Gradients gradients;
  gradients.rows.emplace_back();
  gradients.rows[0].ids.resize(ids);
  return gradients;
}

// A simplified Exchange, which accepts, holds and applies pushes, without
// threads.
class Pushes {
 public:
  explicit Pushes(uint64_t seed) : dice_(seed) {
    limit_bits_ = Draw(10);
    limit_ = kIdBytes << limit_bits_;
    room_ = std::make_unique<PushRoom>(limit_);
    Coordinator::Options options;
    for (uint64_t i = 1 + Draw(3); i > 0; --i) {
      options.policies.push_back(RandomPolicy());
    }
    coordinator_ = std::make_unique<Coordinator>(*Coordinator::Create(options));
    workers_.resize(1 + Draw(5));
  }

  std::string Run() {
    for (int i = 0; i < kActs && error_.empty() && !has_ended_; ++i) {
      if (Draw(100) < 20) {
        FinishApply();
      } else {
        Act(Draw(workers_.size()), /*may_stop=*/true);
      }
    }
    PlayFair();
    return error_;
  }

  const std::map<std::string, uint64_t>& counts() const { return counts_; }

 private:
  struct Worker {
    WorkerId id;
    bool runs = false;
    bool is_waiting = false;
    bool pushes = false;  // false: pulls
    uint64_t clock = 0;
    size_t ids = 0;  // number of ids in the gradients to push
    uint64_t steps = 0;
  };
  struct Call {
    size_t worker;
    uint64_t incarnation;
    bool is_push;
    size_t bytes;
    uint64_t clock;
  };

  uint64_t Draw(uint64_t bound) { return dice_() % bound; }
  void Fail(const std::string& what) {
    if (error_.empty()) error_ = what;
  }

  ConsistencyPolicy::Options RandomPolicy() {
    ConsistencyPolicy::Options policy;
    switch (Draw(4)) {
      case 0:
        policy.backup_workers = static_cast<uint32_t>(1 + Draw(2));
        break;
      case 1:
        policy.staleness = static_cast<int64_t>(1 + Draw(3));
        break;
      case 2:
        policy.staleness = ConsistencyPolicy::kUnlimited;
        break;
      default:
        break;
    }
    return policy;
  }

  void Act(size_t at, bool may_stop) {
    Worker& worker = workers_[at];
    if (!worker.runs) return Join(at);
    if (may_stop && Draw(100) < 3) return Stop(&worker);
    if (worker.is_waiting) return;
    worker.pushes ? Push(at) : Pull(at);
  }

  void Join(size_t at) {
    Worker& worker = workers_[at];
    worker = Worker();
    worker.id = {static_cast<uint32_t>(at), next_++};
    worker.runs = true;
    const Coordinator::Outcome outcome = coordinator_->Join(worker.id, kNow);
    worker.clock = outcome.clock;
    Take(outcome);
  }

  void Stop(Worker* worker) {
    worker->runs = false;
    Take(coordinator_->Lost(worker->id));
  }

  void Pull(size_t at) {
    Worker& worker = workers_[at];
    worker.is_waiting = true;
    calls_[next_] = {at, worker.id.incarnation, false, 0, 0};
    Take(coordinator_->Pull(next_++, worker.id, worker.clock, {}, kNow));
  }

  void Push(size_t at) {
    Worker& worker = workers_[at];
    const size_t bytes = worker.ids * kIdBytes;
    const absl::Status room = room_->Check(
        worker.id, worker.clock, bytes, pending_bytes_, held_, *coordinator_);
    ++counts_[std::string(absl::StatusCodeToString(room.code()))];
    if (absl::IsInvalidArgument(room)) return Stop(&worker);
    if (absl::IsAborted(room)) has_ended_ = true;
    if (!room.ok()) return;
    worker.is_waiting = true;
    pending_bytes_ += bytes;
    calls_[next_] = {at, worker.id.incarnation, true, bytes, worker.clock};
    Take(coordinator_->Push(next_++, worker.id, worker.clock, kNow));
  }

  void FinishApply() {
    if (applying_.empty()) return;
    const size_t at = Draw(applying_.size());
    const Coordinator::Apply apply = std::move(applying_[at]);
    applying_.erase(applying_.begin() + static_cast<std::ptrdiff_t>(at));
    held_.Drop(apply.pushes);
    Take(coordinator_->Applied(apply.policy, kNow));
  }

  void Take(const Coordinator::Outcome& outcome) {
    for (const Coordinator::Answer& answer : outcome.answers) Answer(answer);
    for (const Coordinator::Apply& apply : outcome.applies) {
      applying_.push_back(apply);
    }
    if (held_.bytes() + pending_bytes_ > limit_) {
      Fail(absl::StrCat(held_.bytes(), " and ", pending_bytes_,
                        " bytes are above the limit ", limit_));
    }
  }

  void Answer(const Coordinator::Answer& answer) {
    const Call call = calls_.at(answer.ticket);
    calls_.erase(answer.ticket);
    const bool accepted = answer.verdict == Verdict::kAccepted;
    if (call.is_push) {
      pending_bytes_ -= call.bytes;
      if (accepted) {
        held_.Keep({static_cast<uint32_t>(call.worker), call.clock},
                   GradientsOf(call.bytes / kIdBytes), answer.counted);
      }
    }
    Worker& worker = workers_[call.worker];
    if (!worker.runs || worker.id.incarnation != call.incarnation) return;
    worker.is_waiting = false;
    if (call.is_push) {
      ++worker.clock;
      ++worker.steps;
      worker.pushes = false;
    } else if (accepted) {
      worker.clock = answer.clock;
      worker.pushes = true;
      worker.ids = 1 + Draw(uint64_t{1} << Draw(limit_bits_ + 1));
      // Sometimes makes a push that alone exceeds the limit.
      if (!is_fair_ && Draw(50) == 0) worker.ids += limit_ / kIdBytes;
    }
  }

  std::vector<uint64_t> StepsUnderWay() const {
    std::vector<uint64_t> versions;
    for (size_t at = 0; at < coordinator_->policies(); ++at) {
      const ConsistencyPolicy& policy = coordinator_->policy(at);
      if (policy.synchronous()) versions.push_back(policy.version());
    }
    return versions;
  }

  // Lets all workers continue without faults, unless the training has ended. If
  // the training has ended, expects that some step could never have ended.
  void PlayFair() {
    is_fair_ = true;
    std::vector<uint64_t> steps_at_end;
    int rounds_after_end = 0;
    for (Worker& worker : workers_) worker.steps = 0;
    for (int round = 0; round < kFairRounds && error_.empty(); ++round) {
      bool is_done = true;
      for (size_t at = 0; at < workers_.size(); ++at) {
        is_done &= workers_[at].steps >= kFairSteps;
        if (Draw(2) == 0) Act(at, /*may_stop=*/false);
      }
      for (uint64_t i = Draw(4); i > 0; --i) FinishApply();
      if (!has_ended_ && is_done) return;
      if (!has_ended_) continue;
      if (steps_at_end.empty()) steps_at_end = StepsUnderWay();
      if (++rounds_after_end == 200) return CheckThatOneStands(steps_at_end);
    }
    Fail("workers wait for ever");
  }

  void CheckThatOneStands(const std::vector<uint64_t>& before) {
    ++counts_["ended"];
    const std::vector<uint64_t> now = StepsUnderWay();
    for (size_t i = 0; i < before.size(); ++i) {
      if (now[i] == before[i]) return;
    }
    Fail("a training was ended that could go on");
  }

  std::mt19937_64 dice_;
  uint64_t limit_bits_ = 0;
  size_t limit_ = 0;  // bytes
  std::unique_ptr<Coordinator> coordinator_;
  std::unique_ptr<PushRoom> room_;
  HeldGradients held_;
  size_t pending_bytes_ = 0;
  std::vector<Worker> workers_;
  std::map<uint64_t, Call> calls_;  // by ticket
  std::vector<Coordinator::Apply> applying_;
  uint64_t next_ = 1;  // the next ticket or incarnation
  bool has_ended_ = false;
  bool is_fair_ = false;
  std::string error_;
  std::map<std::string, uint64_t> counts_;
};

// Tests NeverReaches(): a refused push belongs to a step before the cut of a
// checkpoint.
class CutTest : public testing::Test {
 protected:
  CutTest() { cut_.clocks = {{{0, 1}, 1}, {{1, 1}, 1}}; }

  void Hold(uint32_t rank, uint64_t clock) {
    held_.Keep({rank, clock}, GradientsOf(1), {true});
  }
  bool NeverReaches(bool is_synchronous, const PushId& push = {1, 0}) const {
    return room_.NeverReaches(cut_, push, kIdBytes, pending_behind_, held_,
                              is_synchronous);
  }

  const PushRoom room_{2 * kIdBytes};
  CutPoint cut_;
  HeldGradients held_;
  size_t pending_behind_ = 0;
};

TEST_F(CutTest, ThePushesBeforeTheCutGiveTheirRoomBack) {
  Hold(0, 0);
  EXPECT_FALSE(NeverReaches(false));
  Hold(0, 1);  // after the cut
  EXPECT_FALSE(NeverReaches(false));
  Hold(2, 0);  // the cut does not know the rank
  EXPECT_TRUE(NeverReaches(false));
  EXPECT_FALSE(NeverReaches(false, {1, 1}));  // the cut does not wait for it
}

TEST_F(CutTest, PushesThatWaitBehindTheCutKeepTheirRoom) {
  pending_behind_ = kIdBytes;
  EXPECT_FALSE(NeverReaches(false));
  Hold(0, 1);
  EXPECT_TRUE(NeverReaches(false));
}

TEST_F(CutTest, AStepOfASynchronousTableWaitsForThePush) {
  Hold(0, 0);
  EXPECT_FALSE(NeverReaches(true));
  Hold(2, 0);
  EXPECT_TRUE(NeverReaches(true));
}

TEST(PushRoomTest, NobodyWaitsForEverAndTheLimitHolds) {
  EventCounts counts = SimulateEachSeed<Pushes>();
  if (ChosenSeeds().ran() < kSeeds) return;
  // Expects that the seeds have reached each rule. Otherwise the test would not
  // cover that rule.
  for (const char* what :
       {"OK", "RESOURCE_EXHAUSTED", "INVALID_ARGUMENT", "ABORTED", "ended"}) {
    EXPECT_GT(counts[what], 0u) << what;
  }
  EXPECT_GT(ChosenSeeds().ran(), counts["ended"]);
}

}  // namespace
}  // namespace penstock::ps

int main(int argc, char** argv) {
  return penstock::ps::RunWithSeeds(argc, argv, penstock::ps::kSeeds);
}
