// Simulates a server's coordinator, with well-behaved and faulty workers. A
// seed decides the order of events. A model provides the expected outcomes.

#ifndef PENSTOCK_TESTS_PS_CONSISTENCY_SIMULATION_H_
#define PENSTOCK_TESTS_PS_CONSISTENCY_SIMULATION_H_

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "ps/consistency/coordinator.h"
#include "tests/ps/consistency/model.h"

namespace penstock::ps {

class Simulation {
 public:
  explicit Simulation(uint64_t seed);

  // Runs to the end, or to the first error. Returns the error, or "".
  std::string Run();

  // Returns counts of events, so that a test can check the coverage of its
  // seeds.
  const std::map<std::string, uint64_t>& counts() const { return counts_; }

 private:
  using Verdict = Coordinator::Verdict;
  using Outcome = Coordinator::Outcome;

  struct Worker {
    WorkerId id;
    bool runs = false;     // false: has left, died, or not begun
    bool is_mute = false;  // died without leaving: its lease must expire
    uint64_t clock = 0;
    uint32_t speed = 1;
    enum { kJoins, kPulls, kComputes, kPushes } stage = kPulls;
    uint64_t ticket = 0;  // of the call in progress; 0: none
    uint64_t pushed = 0;  // steps that were answered
  };
  struct Call {
    bool is_push;
    absl::optional<WorkerId> worker;
    uint64_t clock;
    std::vector<size_t> policies;
    absl::Time deadline;
  };

  uint64_t Draw(uint64_t bound) { return dice_() % bound; }
  bool Chance(uint32_t percent) { return Draw(100) < percent; }
  void Fail(const std::string& what);
  void Count(const std::string& what) { ++counts_[what]; }

  void SetOptions();
  void Act();
  void Stop(Worker* worker);
  void Work(Worker* worker);
  void ActWorker(Worker* worker);
  void ActStranger();
  void Start(Worker* worker);
  void Join(Worker* worker);
  // Send a call. Return the call's ticket.
  uint64_t SendPull(const absl::optional<WorkerId>& id, uint64_t clock,
                    const std::vector<size_t>& policies);
  uint64_t SendPush(const WorkerId& id, uint64_t clock);
  void FinishApply();
  void PassTime(absl::Duration time);

  void TakeOutcome(const Outcome& outcome);
  void TakeAnswer(const Coordinator::Answer& answer);
  void CheckPushAnswer(const Coordinator::Answer& answer, const Call& call);
  void CheckPullAnswer(const Coordinator::Answer& answer, const Call& call);
  void Advance(Worker* worker, const Coordinator::Answer& answer);
  void TakeApplies(const std::vector<Coordinator::Apply>& applies);
  void CheckRest();
  void CheckBounds();
  void PlayFair();
  void CheckEnd();

  std::mt19937_64 dice_;
  uint32_t unrest_ = 0;       // share of faults among actions, in percent
  uint64_t apply_share_ = 0;  // share of events that end an apply, in percent
  Coordinator::Options options_;
  std::unique_ptr<Coordinator> coordinator_;
  std::unique_ptr<Model> model_;
  absl::Time now_ = absl::UnixEpoch();
  std::vector<Worker> workers_;
  std::map<uint64_t, Call> calls_;  // unanswered calls, by ticket
  // The answer that the model gives to the push being sent.
  uint64_t sending_ = 0;
  absl::optional<Model::PushAnswer> expected_;
  std::vector<Coordinator::Apply> applying_;
  std::vector<std::map<std::pair<uint64_t, uint32_t>, int>> promised_, applied_;
  uint64_t next_ticket_ = 1;
  bool is_fair_ = false;
  std::string error_;
  std::map<std::string, uint64_t> counts_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_TESTS_PS_CONSISTENCY_SIMULATION_H_
