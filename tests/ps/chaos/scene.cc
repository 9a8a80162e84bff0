#include "tests/ps/chaos/scene.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "ps/client/define.h"
#include "tests/ps/chaos/check.h"
#include "tests/ps/chaos/trainer.h"
#include "tests/ps/chaos/values.h"

namespace penstock::ps {
namespace {

constexpr int64_t kAsync = ConsistencyPolicy::kUnlimited;
constexpr uint32_t kMostWorkers = 3;
// Limits the wait for a few steps of the training. Far longer than all timeouts
// of servers and workers together.
constexpr absl::Duration kStuck = absl::Seconds(90);

using Policies = std::vector<Staleness>;

}  // namespace

Scene::Scene(uint64_t seed, std::string folder)
    : dice_(seed),
      drill_(DrillOf(seed)),
      policies_(ChoosePolicies()),
      cluster_(std::move(folder), policies_, ChooseWorkers()) {}

// Returns the drill of a seed. Any four consecutive seeds have all drills.
Scene::Drill Scene::DrillOf(uint64_t seed) {
  constexpr Drill kDrills[] = {Drill::kNone, Drill::kSleeper,
                               Drill::kWrongServer, Drill::kRanksApart};
  return kDrills[seed % 4];
}

// Chooses policies at random. The drills about clocks get policies in which
// ranks do not wait for each other.
std::vector<Staleness> Scene::ChoosePolicies() {
  const std::vector<Policies> any = {
      {{0}}, {{kAsync}}, {{2}}, {{0}, {kAsync}}, {{1}, {kAsync}}, {{0, 1}}};
  const std::vector<Policies> synchronous = {{{0}}, {{0}, {kAsync}}, {{0, 1}}};
  const std::vector<Policies> apart = {{{kAsync}}, {{kAsync}, {kAsync}}};
  switch (drill_) {
    case Drill::kNone:
      return any[Below(any.size())];
    case Drill::kWrongServer:
      return synchronous[Below(synchronous.size())];
    case Drill::kSleeper:
    case Drill::kRanksApart:
      return apart[Below(apart.size())];
  }
  return {};
}

uint32_t Scene::ChooseWorkers() {
  const uint32_t least = drill_ == Drill::kRanksApart ? 2 : 1;
  return least + static_cast<uint32_t>(Below(kMostWorkers - least + 1));
}

void Scene::Run() {
  ASSERT_TRUE(cluster_.FindPorts());
  RestartAll(1 + Below(kMostServers), /*is_proper=*/true);
  const uint64_t faults = drill_ == Drill::kNone ? 4 + Below(16) : Below(8);
  for (uint64_t fault = 0; fault < faults; ++fault) {
    AwaitProgress();
    StartWorkers();
    Fault();
  }
  ASSERT_NO_FATAL_FAILURE(RunDrill());
  Say("-- from here on nothing fails --");
  cluster_.ResumeAll();
  AwaitSaver();
  if (!cluster_.AreServersProper() || Chance(50)) {
    RestartAll(1 + Below(kMostServers), /*is_proper=*/true);
  }
  ASSERT_NO_FATAL_FAILURE(GoOn(3));
  ASSERT_NO_FATAL_FAILURE(MustSave());
  ASSERT_NO_FATAL_FAILURE(GoOn(1));
  ASSERT_NO_FATAL_FAILURE(Check());
  RestartAll(1 + Below(kMostServers), /*is_proper=*/true);
  ASSERT_NO_FATAL_FAILURE(GoOn(2));
  ASSERT_NO_FATAL_FAILURE(Check());
}

std::string Scene::History() {
  std::string text = absl::StrCat("policies ", TextOf(policies_), ", ",
                                  cluster_.workers(), " workers\n");
  const std::lock_guard<std::mutex> lock(mu_);
  for (const std::string& line : history_) absl::StrAppend(&text, line, "\n");
  return text;
}

size_t Scene::acknowledged() {
  size_t all = 0;
  for (uint32_t rank = 0; rank < cluster_.workers(); ++rank) {
    all += cluster_.CountAcknowledged(rank);
  }
  return all;
}

void Scene::Say(const std::string& line) {
  const std::lock_guard<std::mutex> lock(mu_);
  history_.push_back(absl::StrCat(
      absl::FormatTime("%H:%M:%E3S ", absl::Now(), absl::UTCTimeZone()), line));
}

bool Scene::Await(absl::Duration limit, const std::function<bool()>& is_done) {
  const absl::Time end = absl::Now() + limit;
  while (!is_done()) {
    if (absl::Now() > end) return false;
    usleep(5000);
  }
  return true;
}

void Scene::AwaitProgress() {
  const size_t wanted = acknowledged() + Below(40);
  Await(absl::Milliseconds(1 + Below(400)),
        [&] { return acknowledged() >= wanted; });
}

void Scene::StartWorkers() {
  for (uint32_t rank = 0; rank < cluster_.workers(); ++rank) {
    process::Child* const worker = cluster_.worker(rank);
    if (worker != nullptr && worker->IsAlive()) continue;
    Say(absl::StrCat("start worker ", rank));
    cluster_.StartWorker(rank);
  }
}

void Scene::Fault() {
  const size_t server = Below(cluster_.servers());
  const auto rank = static_cast<uint32_t>(Below(cluster_.workers()));
  switch (Below(10)) {
    case 0:
    case 1:
      Say(absl::StrCat("kill server ", server));
      return cluster_.KillServer(server);
    case 2:
      if (cluster_.server(server) == nullptr) return RestartOne(server);
      Say(absl::StrCat("stop server ", server));
      cluster_.server(server)->Suspend();
      AwaitProgress();
      return cluster_.server(server)->Resume();
    case 3:
      Say(absl::StrCat("kill worker ", rank));
      return cluster_.KillWorker(rank);
    case 4:
      if (cluster_.worker(rank) == nullptr) return;
      cluster_.worker(rank)->Resume();
      if (!Chance(60)) return;
      Say(absl::StrCat("stop worker ", rank));
      return cluster_.worker(rank)->Suspend();
    case 5:
    case 6:
      return StartSaver();
    case 7:
      Say("a chief gives up");
      return DefineWithin(absl::Milliseconds(1 + Below(60))).IgnoreError();
    case 8:
      for (size_t at = 0; at < cluster_.servers(); ++at) {
        if (cluster_.server(at) == nullptr) RestartOne(at);
      }
      return;
    default:
      return RestartAll(
          Chance(60) ? cluster_.servers() : 1 + Below(kMostServers),
          Chance(70));
  }
}

void Scene::RestartOne(size_t server) {
  const ProcessCluster::How how = {Chance(80), Chance(10)};
  Say(absl::StrCat("start server ", server,
                   how.restores ? "" : " without --restore",
                   how.has_other_folder ? " with another folder" : ""));
  if (!how.restores || how.has_other_folder) ++improper_;
  cluster_.StartServer(server, how);
}

void Scene::RestartAll(size_t servers, bool is_proper) {
  Say(absl::StrCat("start all ", servers, " servers",
                   is_proper ? "" : ", in a wrong way"));
  if (!is_proper) ++improper_;
  cluster_.KillAllServers(servers);
  const size_t wrong = Chance(50) ? Below(servers) : servers;
  for (size_t server = 0; server < servers; ++server) {
    ProcessCluster::How how;
    if (!is_proper && (wrong == servers || wrong == server)) {
      how.restores = Chance(40);
      how.has_other_folder = Chance(40);
    }
    cluster_.StartServer(server, how);
  }
}

// Defines the training as a chief whose timeout may end anywhere in Define().
absl::Status Scene::DefineWithin(absl::Duration timeout) {
  Definition definition;
  definition.servers = ChannelsTo(cluster_.addresses());
  definition.addresses = cluster_.addresses();
  definition.model = ModelOf(policies_);
  definition.timeout = timeout;
  return Define(definition).status();
}

Scene::Saved Scene::Save(const TrainingConnection::Channels& channels,
                         const CheckpointOptions& options) {
  TrainingConnection::Options open;
  open.servers = channels;
  open.wait_for_values = false;
  open.timeout = options.timeout;
  const auto connection = TrainingConnection::Open(open);
  if (!connection.ok()) return {connection.status()};
  absl::Status status = TakeCheckpoint(**connection, options).status();
  // ALREADY_EXISTS is a success: the newest checkpoint has every push.
  if (absl::IsAlreadyExists(status)) status = absl::OkStatus();
  return {status, (*connection)->run()};
}

void Scene::StartSaver() {
  if (saver_.joinable()) return AwaitSaver();
  CheckpointOptions options;
  options.incremental = Chance(50);
  options.keep = Below(4);
  options.timeout = absl::Seconds(1 + Below(10));
  Say(absl::StrCat("take a checkpoint",
                   options.incremental ? ", incremental" : "", ", keep ",
                   options.keep));
  settled_ = SettledByRun();
  improper_before_ = improper_;
  was_proper_ = cluster_.AreServersProper();
  saver_ =
      std::thread([this, options, channels = ChannelsTo(cluster_.addresses())] {
        saved_ = Save(channels, options);
      });
}

void Scene::AwaitSaver() {
  if (!saver_.joinable()) return;
  saver_.join();
  Say(absl::StrCat("the checkpoint: ", saved_.status.ToString()));
  if (!saved_.status.ok()) return;
  ++checkpoints_;
  // Require nothing if a server used a different folder. A later restart may
  // not find this checkpoint.
  if (!was_proper_ || improper_ != improper_before_) return;
  const auto& settled = settled_[saved_.run];
  required_.insert(settled.begin(), settled.end());
}

std::map<uint64_t, std::set<uint64_t>> Scene::SettledByRun() {
  std::map<uint64_t, std::set<uint64_t>> settled;
  for (const RecordedPush& push : cluster_.Pushes()) {
    if (push.is_settled) settled[push.run].insert(push.number);
  }
  return settled;
}

void Scene::GoOn(size_t steps) {
  std::vector<size_t> wanted;
  for (uint32_t rank = 0; rank < cluster_.workers(); ++rank) {
    wanted.push_back(cluster_.CountAcknowledged(rank) + steps);
  }
  int ends = 0;
  const bool is_done = Await(kStuck, [&] {
    for (size_t server = 0; server < cluster_.servers(); ++server) {
      if (cluster_.server(server) != nullptr) continue;
      Say(absl::StrCat("start server ", server));
      cluster_.StartServer(server, {});
    }
    for (uint32_t rank = 0; rank < cluster_.workers(); ++rank) {
      process::Child* const worker = cluster_.worker(rank);
      if (worker != nullptr && worker->IsAlive()) continue;
      if (++ends % 10 == 0) {
        RestartAll(cluster_.servers(), /*is_proper=*/true);
      }
      Say(absl::StrCat("start worker ", rank));
      cluster_.StartWorker(rank);
    }
    for (uint32_t rank = 0; rank < cluster_.workers(); ++rank) {
      if (cluster_.CountAcknowledged(rank) < wanted[rank]) return false;
    }
    return true;
  });
  ASSERT_TRUE(is_done) << "the training does not go on";
}

void Scene::MustSave() {
  settled_ = SettledByRun();
  was_proper_ = true;
  improper_before_ = improper_;
  saver_ = std::thread([this, channels = ChannelsTo(cluster_.addresses())] {
    CheckpointOptions options;
    options.timeout = absl::Seconds(45);
    saved_ = Save(channels, options);
  });
  AwaitSaver();
  ASSERT_TRUE(saved_.status.ok()) << saved_.status;
}

void Scene::Check() {
  for (uint32_t rank = 0; rank < cluster_.workers(); ++rank) {
    EXPECT_EQ(cluster_.FinishWorker(rank), 0) << "worker " << rank;
  }
  TrainingConnection::Options open;
  open.servers = ChannelsTo(cluster_.addresses());
  const auto connection = TrainingConnection::Open(open);
  ASSERT_TRUE(connection.ok()) << connection.status();
  const absl::Status applied = AwaitApplied(open.servers);
  ASSERT_TRUE(applied.ok()) << applied;
  const std::vector<RecordedPush> pushes = cluster_.Pushes();
  const auto values = ReadValues(*connection, policies_.size(), pushes);
  ASSERT_TRUE(values.ok()) << values.status();
  for (const std::string& wrong :
       CheckValues(policies_, cluster_.workers(), pushes, required_,
                   (*connection)->run(), *values)) {
    ADD_FAILURE() << wrong;
  }
}

}  // namespace penstock::ps
