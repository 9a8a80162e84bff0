// The drills of a scene: faults at moments that random faults seldom hit.

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/ps/chaos/scene.h"

namespace penstock::ps {
namespace {

// Limits the time of a definition. Far longer than a definition takes on a busy
// machine.
constexpr absl::Duration kPatience = absl::Seconds(30);
// The number of steps by which one rank is ahead of another.
constexpr size_t kAhead = 5;

}  // namespace

void Scene::RunDrill() {
  switch (drill_) {
    case Drill::kNone:
      return;
    case Drill::kSleeper:
      return SleepThroughARestart();
    case Drill::kWrongServer:
      return StartOneServerWithoutRestore();
    case Drill::kRanksApart:
      return RestoreWithRanksApart();
  }
}

void Scene::TrainBeyondACheckpoint(size_t servers) {
  cluster_.ResumeAll();
  AwaitSaver();
  RestartAll(servers, /*is_proper=*/true);
  ASSERT_NO_FATAL_FAILURE(GoOn(1));
  ASSERT_NO_FATAL_FAILURE(MustSave());
  ASSERT_NO_FATAL_FAILURE(GoOn(2));
}

void Scene::SleepThroughARestart() {
  ASSERT_NO_FATAL_FAILURE(TrainBeyondACheckpoint(1 + Below(kMostServers)));
  const auto rank = static_cast<uint32_t>(Below(cluster_.workers()));
  Say(absl::StrCat("worker ", rank, " sleeps"));
  cluster_.worker(rank)->Suspend();
  RestartAll(cluster_.servers(), /*is_proper=*/true);
  const absl::Status defined = DefineWithin(kPatience);
  ASSERT_TRUE(defined.ok()) << defined;
  cluster_.worker(rank)->Resume();
  ASSERT_NO_FATAL_FAILURE(GoOn(2));
  Check();
}

void Scene::StartOneServerWithoutRestore() {
  const size_t servers = 2 + Below(kMostServers - 1);
  ASSERT_NO_FATAL_FAILURE(TrainBeyondACheckpoint(servers));
  for (uint32_t rank = 0; rank < cluster_.workers(); ++rank) {
    cluster_.KillWorker(rank);
  }
  const size_t wrong = Below(servers);
  Say(absl::StrCat("start all servers, server ", wrong, " without --restore"));
  cluster_.KillAllServers(servers);
  for (size_t server = 0; server < servers; ++server) {
    ProcessCluster::How how;
    how.restores = server != wrong;
    cluster_.StartServer(server, how);
  }
  const absl::Status refused = DefineWithin(kPatience);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused))
      << "with one server without --restore: " << refused;
}

void Scene::RestoreWithRanksApart() {
  ASSERT_NO_FATAL_FAILURE(TrainBeyondACheckpoint(1 + Below(kMostServers)));
  const auto rank = static_cast<uint32_t>(Below(cluster_.workers()));
  const uint32_t other = (rank + 1) % cluster_.workers();
  Say(absl::StrCat("worker ", rank, " stops, worker ", other, " goes on"));
  cluster_.worker(rank)->Suspend();
  const size_t wanted = cluster_.CountAcknowledged(other) + kAhead;
  Await(kPatience, [&] { return cluster_.CountAcknowledged(other) >= wanted; });
  ASSERT_NO_FATAL_FAILURE(MustSave());
  cluster_.worker(rank)->Resume();
  RestartAll(cluster_.servers(), /*is_proper=*/true);
  ASSERT_NO_FATAL_FAILURE(GoOn(2));
  Check();
}

}  // namespace penstock::ps
