// A training in several processes, with faults.

#ifndef PENSTOCK_TESTS_PS_CHAOS_SCENE_H_
#define PENSTOCK_TESTS_PS_CHAOS_SCENE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "ps/client/checkpoint.h"
#include "ps/client/training_connection.h"
#include "tests/ps/chaos/cluster.h"
#include "tests/ps/training/training.h"

namespace penstock::ps {

// One test run with faults. The order of the faults depends on the seed alone.
// The speed of the processes depends on the machine. Failures are those of
// gtest.
//
// Most scenes include a drill: a fault at a moment that random faults seldom
// hit.
class Scene {
 public:
  // `folder` is the folder for checkpoints, records and logs.
  Scene(uint64_t seed, std::string folder);
  ~Scene() { AwaitSaver(); }

  void Run();

  // Returns a list of the events so far, for people. Any thread may call it.
  std::string History();
  size_t acknowledged();
  size_t checkpoints() const { return checkpoints_; }

 private:
  enum class Drill { kNone, kSleeper, kWrongServer, kRanksApart };
  // The result of a checkpoint that the saver's own thread takes.
  struct Saved {
    absl::Status status;
    uint64_t run = 0;
  };

  static Drill DrillOf(uint64_t seed);
  std::vector<Staleness> ChoosePolicies();
  uint32_t ChooseWorkers();

  uint64_t Below(uint64_t bound) { return dice_() % bound; }
  bool Chance(uint64_t percent) { return Below(100) < percent; }
  void Say(const std::string& line);

  // Waits until `is_done` returns true. Returns false if `limit` ends first.
  static bool Await(absl::Duration limit, const std::function<bool()>& is_done);
  // Waits until the workers have taken some steps. The wait is short, because
  // the workers may wait for a dead process.
  void AwaitProgress();
  void StartWorkers();

  void Fault();
  void RestartOne(size_t server);
  void RestartAll(size_t servers, bool is_proper);
  absl::Status DefineWithin(absl::Duration timeout);

  static Saved Save(const TrainingConnection::Channels& channels,
                    const CheckpointOptions& options);
  // Starts a checkpoint on the saver's thread. The checkpoint must contain all
  // pushes that are settled at this time.
  void StartSaver();
  void AwaitSaver();
  std::map<uint64_t, std::set<uint64_t>> SettledByRun();

  // Waits until each rank has taken `steps` steps. Restarts processes that have
  // ended, and all servers if workers cannot begin.
  void GoOn(size_t steps);
  void MustSave();
  void Check();

  // Starts `servers` servers, and trains. Returns when there is a checkpoint
  // and the training has taken steps after it.
  void TrainBeyondACheckpoint(size_t servers);
  void RunDrill();
  // Drill: a worker sleeps while all servers restore an older checkpoint. The
  // worker then pushes for the earlier run.
  void SleepThroughARestart();
  // Drill: one server starts without --restore. The chief must be refused.
  void StartOneServerWithoutRestore();
  // Drill: ranks whose clocks differ continue from a checkpoint.
  void RestoreWithRanksApart();

  std::mt19937_64 dice_;
  const Drill drill_;
  const std::vector<Staleness> policies_;
  ProcessCluster cluster_;
  std::mutex mu_;
  std::vector<std::string> history_;  // with mu_ held
  size_t improper_ = 0;               // starts in a wrong way
  size_t checkpoints_ = 0;
  std::set<uint64_t> required_;  // pushes that a checkpoint has

  std::thread saver_;
  Saved saved_;  // the saver's until it is joined
  std::map<uint64_t, std::set<uint64_t>> settled_;  // before the saver began
  size_t improper_before_ = 0;
  bool was_proper_ = false;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_TESTS_PS_CHAOS_SCENE_H_
