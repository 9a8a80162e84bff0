// A training on real processes, while at random servers and workers are killed
// and stopped, servers are restarted in wrong ways, chiefs give up, and
// checkpoints are taken. Afterwards nothing fails any more: the training must
// go on, take a checkpoint, and go on from that checkpoint on other servers.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "ps/client/checkpoint.h"
#include "ps/client/define.h"
#include "tests/ps/chaos/check.h"
#include "tests/ps/chaos/cluster.h"
#include "tests/ps/chaos/trainer.h"
#include "tests/ps/chaos/values.h"
#include "tests/ps/seeds.h"

namespace penstock::ps {
namespace {

constexpr char kTrainerFlag[] = "--trainer";
constexpr int64_t kAsync = ConsistencyPolicy::kUnlimited;
constexpr uint32_t kMostWorkers = 3;
// Limits the wait for a few steps, after which the training counts as stuck.
// Far longer than all time limits of servers and workers together.
constexpr absl::Duration kStuck = absl::Seconds(90);

std::vector<Staleness> PoliciesOf(uint64_t choice) {
  const std::vector<std::vector<Staleness>> all = {
      {{0}}, {{kAsync}}, {{2}}, {{0}, {kAsync}}, {{1}, {kAsync}}, {{0, 1}}};
  return all[choice % all.size()];
}

// One run. The order of the faults depends on the seed alone. The speed of the
// processes depends on the machine.
class Scene {
 public:
  Scene(uint64_t seed, std::string folder)
      : dice_(seed),
        policies_(PoliciesOf(Below(6))),
        cluster_(std::move(folder), policies_,
                 1 + static_cast<uint32_t>(Below(kMostWorkers))) {}
  ~Scene() { AwaitSaver(); }

  void Run() {
    ASSERT_TRUE(cluster_.FindPorts());
    RestartAll(1 + Below(kMostServers), /*is_proper=*/true);
    const uint64_t faults = 4 + Below(16);
    for (uint64_t fault = 0; fault < faults; ++fault) {
      AwaitProgress();
      StartWorkers();
      Fault();
    }
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

  std::string History() {
    std::string text = absl::StrCat("policies ", TextOf(policies_), ", ",
                                    cluster_.workers(), " workers\n");
    for (const std::string& line : history_) absl::StrAppend(&text, line, "\n");
    for (uint32_t rank = 0; rank < cluster_.workers(); ++rank) {
      absl::StrAppend(&text, cluster_.NotesOf(rank));
    }
    return text;
  }

  size_t acknowledged() {
    size_t all = 0;
    for (uint32_t rank = 0; rank < cluster_.workers(); ++rank) {
      all += cluster_.CountAcknowledged(rank);
    }
    return all;
  }
  size_t checkpoints() const { return checkpoints_; }

 private:
  // The answer of a saver, which runs on its own thread.
  struct Saved {
    absl::Status status;
    uint64_t run = 0;
  };

  uint64_t Below(uint64_t bound) { return dice_() % bound; }
  bool Chance(uint64_t percent) { return Below(100) < percent; }
  void Say(const std::string& line) {
    history_.push_back(absl::StrCat(
        absl::FormatTime("%H:%M:%E3S ", absl::Now(), absl::UTCTimeZone()),
        line));
  }

  // Waits until `is_done`, and returns true, or false after the limit.
  static bool Await(absl::Duration limit,
                    const std::function<bool()>& is_done) {
    const absl::Time end = absl::Now() + limit;
    while (!is_done()) {
      if (absl::Now() > end) return false;
      usleep(5000);
    }
    return true;
  }

  // Lets the workers take some steps; not for long, as they may wait for what
  // is dead.
  void AwaitProgress() {
    const size_t wanted = acknowledged() + Below(40);
    Await(absl::Milliseconds(1 + Below(400)),
          [&] { return acknowledged() >= wanted; });
  }

  void StartWorkers() {
    for (uint32_t rank = 0; rank < cluster_.workers(); ++rank) {
      process::Child* const worker = cluster_.worker(rank);
      if (worker != nullptr && worker->IsAlive()) continue;
      Say(absl::StrCat("start worker ", rank));
      cluster_.StartWorker(rank);
    }
  }

  void Fault() {
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
        return GiveUpDefining();
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

  void RestartOne(size_t server) {
    const ProcessCluster::How how = {Chance(80), Chance(10)};
    Say(absl::StrCat("start server ", server,
                     how.restores ? "" : " without --restore",
                     how.has_other_folder ? " with another folder" : ""));
    if (!how.restores || how.has_other_folder) ++improper_;
    cluster_.StartServer(server, how);
  }

  void RestartAll(size_t servers, bool is_proper) {
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

  // A chief whose patience ends somewhere in Define().
  void GiveUpDefining() {
    Say("a chief gives up");
    Definition definition;
    definition.servers = ChannelsTo(cluster_.addresses());
    definition.addresses = cluster_.addresses();
    definition.model = ModelOf(policies_);
    definition.timeout = absl::Milliseconds(1 + Below(60));
    Define(definition).status().IgnoreError();
  }

  static Saved Save(const TrainingConnection::Channels& channels,
                    const CheckpointOptions& options) {
    TrainingConnection::Options open;
    open.servers = channels;
    open.wait_for_values = false;
    open.timeout = options.timeout;
    const auto connection = TrainingConnection::Open(open);
    if (!connection.ok()) return {connection.status()};
    absl::Status status = TakeCheckpoint(**connection, options).status();
    // The newest checkpoint has everything.
    if (absl::IsAlreadyExists(status)) status = absl::OkStatus();
    return {status, (*connection)->run()};
  }

  // A checkpoint must have the pushes of its training that their workers know
  // to be applied.
  void StartSaver() {
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
    saver_ = std::thread(
        [this, options, channels = ChannelsTo(cluster_.addresses())] {
          saved_ = Save(channels, options);
        });
  }

  void AwaitSaver() {
    if (!saver_.joinable()) return;
    saver_.join();
    Say(absl::StrCat("the checkpoint: ", saved_.status.ToString()));
    if (!saved_.status.ok()) return;
    ++checkpoints_;
    // In another folder a checkpoint may be out of sight later.
    if (!was_proper_ || improper_ != improper_before_) return;
    const auto& settled = settled_[saved_.run];
    required_.insert(settled.begin(), settled.end());
  }

  std::map<uint64_t, std::set<uint64_t>> SettledByRun() const {
    std::map<uint64_t, std::set<uint64_t>> settled;
    for (const RecordedPush& push : cluster_.Pushes()) {
      if (push.is_settled) settled[push.run].insert(push.number);
    }
    return settled;
  }

  // Each rank takes some steps. An operator starts what has ended, and all
  // servers anew if workers cannot begin.
  void GoOn(size_t steps) {
    std::vector<size_t> wanted;
    for (uint32_t rank = 0; rank < cluster_.workers(); ++rank) {
      wanted.push_back(cluster_.CountAcknowledged(rank) + steps);
    }
    int ends = 0;
    const bool is_done = Await(kStuck, [&] {
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

  void MustSave() {
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

  void Check() {
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

  std::mt19937_64 dice_;
  const std::vector<Staleness> policies_;
  ProcessCluster cluster_;
  std::vector<std::string> history_;
  size_t improper_ = 0;  // starts in a wrong way
  size_t checkpoints_ = 0;
  std::set<uint64_t> required_;  // pushes that a checkpoint has

  std::thread saver_;
  Saved saved_;  // the saver's, until it was joined
  std::map<uint64_t, std::set<uint64_t>> settled_;  // before the saver began
  size_t improper_before_ = 0;
  bool was_proper_ = false;
};

TEST(ChaosProcessTest, ProcessesForgetAndRepeatNothing) {
  Seeds& seeds = ChosenSeeds();
  size_t acknowledged = 0;
  size_t checkpoints = 0;
  for (uint64_t seed = seeds.first(); seeds.Wants(seed); ++seed) {
    std::string folder = testing::TempDir() + "/chaos-XXXXXX";
    ASSERT_NE(mkdtemp(&folder[0]), nullptr);
    {
      Scene scene(seed, folder);
      scene.Run();
      if (HasFailure()) {
        FAIL() << scene.History() << folder << " has logs and checkpoints; "
               << RepeatWith(seed);
      }
      acknowledged += scene.acknowledged();
      checkpoints += scene.checkpoints();
    }
    std::filesystem::remove_all(folder);
  }
  seeds.Print();
  std::printf("%zu pushes, %zu checkpoints\n", acknowledged, checkpoints);
}

}  // namespace
}  // namespace penstock::ps

int main(int argc, char** argv) {
  if (argc > 4 && std::string(argv[1]) == penstock::ps::kTrainerFlag) {
    return penstock::ps::BeTrainer(
        penstock::ps::TrainerArguments::From({argv + 2, argv + argc}));
  }
  return penstock::ps::RunWithSeeds(argc, argv, 1000000);
}
