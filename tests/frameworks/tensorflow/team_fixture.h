// Teams of several tasks in one process, for tests.

#ifndef PENSTOCK_TESTS_FRAMEWORKS_TENSORFLOW_TEAM_FIXTURE_H_
#define PENSTOCK_TESTS_FRAMEWORKS_TENSORFLOW_TEAM_FIXTURE_H_

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "frameworks/tensorflow/team.h"
#include "frameworks/tensorflow/team_meeting.h"
#include "gtest/gtest.h"

namespace penstock {
namespace tensorflow {

using Formed = absl::StatusOr<std::unique_ptr<collectives::Group>>;

constexpr char kTeam[] = "group 1 of /job:worker";

// The outcome of one reduction.
struct Outcome {
  std::promise<absl::Status> ended;
  std::future<absl::Status> end = ended.get_future();
  bool is_ring = false;
  std::vector<float> values;
  // Expires when the team no longer uses `values`.
  std::weak_ptr<int> memory;
};

inline Reduction ReductionOf(std::string key, Outcome* outcome) {
  Reduction reduction;
  reduction.key = std::move(key);
  reduction.in = outcome->values.data();
  reduction.out = outcome->values.data();
  reduction.count = static_cast<int64_t>(outcome->values.size());
  auto memory = std::make_shared<int>();
  outcome->memory = memory;
  reduction.memory = std::move(memory);
  reduction.done = [outcome](const absl::Status& status) {
    outcome->ended.set_value(status);
  };
  reduction.otherwise = [outcome] {
    outcome->is_ring = true;
    outcome->ended.set_value(absl::OkStatus());
  };
  return reduction;
}

// The teams of several tasks, in one process.
class TeamTest : public testing::Test {
 protected:
  void Start(int ranks) {
    for (int rank = 0; rank < ranks; ++rank) {
      teams_.push_back(*Team::Start([this, rank, ranks] {
        return rank == 0 ? meetings_.Lead(kTeam, ranks) : Join(rank, ranks);
      }));
    }
  }
  Formed Join(int rank, int ranks) {
    std::promise<absl::StatusOr<std::string>> invited;
    Joiner joiner = JoinerHere(kTeam, rank);
    if (are_elsewhere_) joiner.host = "another host";
    meetings_.Add(joiner,
                  [&invited](const absl::StatusOr<std::string>& invitation) {
                    invited.set_value(invitation);
                  });
    const auto invitation = invited.get_future().get();
    if (!invitation.ok()) return invitation.status();
    return AcceptInvitation(*invitation, rank, ranks);
  }
  ~TeamTest() override {
    // Waits for the threads, which own their teams.
    for (const auto& team : teams_) team->Abort(absl::CancelledError("end"));
    for (const auto& team : teams_) {
      while (team.use_count() > 1) absl::SleepFor(absl::Milliseconds(1));
    }
  }
  // Returns true if the reduction succeeds within ten seconds.
  static bool EndsSoon(Outcome* outcome) {
    return outcome->end.wait_for(std::chrono::seconds(10)) ==
               std::future_status::ready &&
           outcome->end.get().ok();
  }
  // Waits until the teams no longer use the values.
  static void WaitForMemory(const Outcome (&outcomes)[2]) {
    for (const Outcome& outcome : outcomes) {
      while (!outcome.memory.expired()) absl::SleepFor(absl::Microseconds(50));
    }
  }
  // Starts a reduction "key" that no other task joins, and cancels it. Returns
  // the memory that the team may still keep.
  std::weak_ptr<int> CallAndCancel(int rank) {
    auto outcome = std::make_shared<Outcome>();
    outcome->values.assign(1000, 100);
    Reduction reduction = ReductionOf("key", outcome.get());
    const std::weak_ptr<int> memory = outcome->memory;
    reduction.done = [outcome](const absl::Status& status) {
      outcome->ended.set_value(status);
    };
    teams_[rank]->Add(std::move(reduction));
    teams_[rank]->Cancel("key");
    EXPECT_TRUE(absl::IsCancelled(outcome->end.get()));
    return memory;
  }
  void WaitWhile(const std::string& state) {
    for (const auto& team : teams_) {
      while (team->Describe().state == state) {
        absl::SleepFor(absl::Milliseconds(1));
      }
    }
  }

  TeamMeetings meetings_;
  bool are_elsewhere_ = false;
  std::vector<std::shared_ptr<Team>> teams_;
};

}  // namespace tensorflow
}  // namespace penstock

#endif  // PENSTOCK_TESTS_FRAMEWORKS_TENSORFLOW_TEAM_FIXTURE_H_
