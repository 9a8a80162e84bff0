// Tests checkpoints against uninterrupted training. A checkpoint is of one
// point in time, and a restored training continues as an uninterrupted one.

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "ps/checkpoint/chain.h"
#include "tests/ps/checkpoint/memory_files.h"
#include "tests/ps/seeds.h"
#include "tests/ps/server/small_server.h"
#include "tests/ps/server/small_training.h"

namespace penstock::ps {
namespace {

using checkpoint::Loss;
using checkpoint::MemoryFiles;
using optim::Rule;

TableSpec With(TableSpec table, Rule rule, double rate) {
  table.optimizer.rule = rule;
  table.optimizer.schedule.learning_rate = rate;
  return table;
}

SmallTraining::Options Of(size_t servers, uint32_t workers, bool restore) {
  SmallTraining::Options options;
  options.servers = servers;
  options.workers = workers;
  options.restore = restore;
  return options;
}

std::vector<float> RandomFloats(size_t count, std::mt19937* random) {
  std::vector<float> values(count);
  for (float& value : values) {
    value = static_cast<float>(static_cast<int32_t>((*random)())) * 1e-9F;
  }
  return values;
}

// Returns a model of a split table, two packed tables, and a sparse table.
Model AdamModel() {
  Model model;
  model.tables = {DenseTable("split", {1100, 1000}), DenseTable("bias", {7}),
                  DenseTable("scalar", {}), SparseTable("rows", 3)};
  for (TableSpec& table : model.tables) {
    table = With(std::move(table), Rule::kAdam, 0.01);
  }
  return model;
}

void TrainAdam(SmallTraining* training, uint64_t until) {
  for (uint64_t step = training->clock(0); step < until; ++step) {
    for (uint32_t worker = 0; worker < 2; ++worker) {
      std::mt19937 random(static_cast<uint32_t>(step * 2 + worker));
      TableValues gradients;
      gradients.dense["split"] = RandomFloats(1100 * 1000, &random);
      gradients.dense["bias"] = RandomFloats(7, &random);
      gradients.dense["scalar"] = RandomFloats(1, &random);
      for (int i = 0; i < 50; ++i) {
        gradients.rows["rows"][random() % 100] = RandomFloats(3, &random);
      }
      const absl::Status pushed = training->Push(worker, gradients);
      ASSERT_TRUE(pushed.ok()) << pushed;
    }
    ASSERT_TRUE(training->Settle().ok());
  }
}

TEST(CheckpointTrainingTest, GoesOnBitForBitOnAnyNumberOfServers) {
  for (size_t from = 1; from <= 3; ++from) {
    MemoryFiles files;
    TrainingState uncut;
    {
      SmallTraining training(AdamModel(), &files, Of(from, 2, false));
      ASSERT_TRUE(training.Define().ok());
      ASSERT_TRUE(training.Begin().ok());
      TrainAdam(&training, 2);
      ASSERT_EQ(*training.Checkpoint(), 2u);
      TrainAdam(&training, 4);
      uncut = training.State();
    }
    for (size_t to = 1; to <= 3; ++to) {
      SmallTraining training(AdamModel(), &files, Of(to, 2, true));
      ASSERT_EQ(*training.Define(), 2u);
      ASSERT_TRUE(training.Begin().ok());
      ASSERT_EQ(training.clock(0), 2u);
      TrainAdam(&training, 4);
      EXPECT_TRUE(training.State() == uncut) << from << " to " << to;
    }
  }
}

// Returns a model in which each push moves an amount between two variables and
// between two rows, and adds 1 to the sum of squares of an Adagrad variable and
// of an Adagrad row.
Model MovingModel() {
  constexpr int64_t kUnlimited = ConsistencyPolicy::kUnlimited;
  Model model;
  model.tables = {
      DenseTable("a", {4}, kUnlimited), DenseTable("b", {5000}, kUnlimited),
      With(DenseTable("squares", {5000}, kUnlimited), Rule::kAdagrad, 1e-3),
      SparseTable("e", 1, kUnlimited),
      With(SparseTable("counts", 1, kUnlimited), Rule::kAdagrad, 1e-3)};
  return model;
}

TableValues Move(std::mt19937* random) {
  const float amount = 1 + static_cast<float>((*random)() % 5);
  TableValues gradients;
  gradients.dense["a"].resize(4);
  gradients.dense["b"].resize(5000);
  gradients.dense["squares"].resize(5000);
  gradients.dense["a"][(*random)() % 4] = amount;
  gradients.dense["b"][(*random)() % 5000] = -amount;
  gradients.dense["squares"][(*random)() % 5000] = 1;
  const uint64_t id = (*random)() % 500;
  gradients.rows["e"] = {{id, {amount}}, {id + 1, {-amount}}};
  gradients.rows["counts"] = {{(*random)() % 500, {1}}};
  return gradients;
}

double Sum(const std::vector<float>& values) {
  double sum = 0;
  for (float value : values) sum += value;
  return sum;
}

double SumOfRows(const TrainingState& state, const std::string& table,
                 size_t column) {
  double sum = 0;
  const auto rows = state.rows.find(table);
  if (rows == state.rows.end()) return 0;
  for (const auto& [id, row] : rows->second) sum += row[column];
  return sum;
}

// Checks that the checkpoint has each push wholly or not at all. Returns the
// number of its pushes.
uint64_t CheckMoved(const TrainingState& state) {
  EXPECT_EQ(Sum(state.dense.at("a")) + Sum(state.dense.at("b")), 0);
  EXPECT_EQ(SumOfRows(state, "e", 0), 0);
  const uint64_t steps = state.steps.at("a");
  for (const auto& [table, taken] : state.steps) EXPECT_EQ(taken, steps);
  EXPECT_EQ(Sum(state.dense.at("squares/accumulator")), steps);
  EXPECT_EQ(SumOfRows(state, "counts", 1), steps);  // the slot
  EXPECT_EQ(SumOfRows(state, "counts", 2), steps);  // updates
  EXPECT_EQ(SumOfRows(state, "e", 1), 2 * steps);
  return steps;
}

class Pushes {
 public:
  // Counts one push. Returns true if more pushes should follow.
  bool CountOne() {
    absl::MutexLock lock(&mu_);
    ++count_;
    return !stop_;
  }
  void WaitForMore() {
    absl::MutexLock lock(&mu_);
    const uint64_t enough = count_ + 30;
    const auto is_enough = [&] { return count_ >= enough; };
    mu_.Await(absl::Condition(&is_enough));
  }
  void Stop() {
    absl::MutexLock lock(&mu_);
    stop_ = true;
  }

 private:
  absl::Mutex mu_;
  uint64_t count_ = 0;
  bool stop_ = false;
};

TEST(CheckpointTrainingTest, IsOfOnePointInTimeDuringAsynchronousPushes) {
  MemoryFiles files;
  SmallTraining training(MovingModel(), &files, Of(1, 2, false));
  ASSERT_TRUE(training.Define().ok());
  ASSERT_TRUE(training.Begin().ok());
  files.SetMostAtOnce(200);  // makes a checkpoint slow
  Pushes pushes;
  std::vector<std::thread> workers;
  for (uint32_t worker = 0; worker < 2; ++worker) {
    workers.emplace_back([&training, &pushes, worker] {
      std::mt19937 random(worker);
      do {
        ASSERT_TRUE(training.Push(worker, Move(&random)).ok());
      } while (pushes.CountOne());
    });
  }
  std::set<uint64_t> points;
  for (int round = 0; points.size() < 12; ++round) {
    pushes.WaitForMore();
    const auto step = training.Checkpoint(round % 4 != 0);
    // Continues if there is nothing to write, because the server has accepted
    // new pushes but has applied none of them.
    if (absl::IsAlreadyExists(step.status())) continue;
    ASSERT_TRUE(step.ok()) << step.status();
    SmallTraining restored(MovingModel(), &files, Of(1 + round % 3, 2, true));
    ASSERT_EQ(*restored.Define(), *step);
    const uint64_t taken = CheckMoved(restored.State());
    points.insert(taken);
    // Adds the manifest's clocks, which belong to the same cut as the values.
    uint64_t clocks = 0;
    const auto manifest = checkpoint::ReadManifest(&files, *step);
    ASSERT_TRUE(manifest.ok()) << manifest.status();
    for (const auto& clock : manifest->cut.clocks) {
      clocks += clock.clock;
    }
    EXPECT_EQ(clocks, taken);
  }
  pushes.Stop();
  for (std::thread& worker : workers) worker.join();
}

// Returns a model in which rows come and go: the sparse table is bounded.
Model BoundedModel() {
  Model model;
  model.tables = {With(DenseTable("x", {30}), Rule::kMomentum, 0.1),
                  With(DenseTable("y", {70, 90}), Rule::kAdagrad, 0.1),
                  With(SparseTable("rows", 2), Rule::kAdagrad, 0.1)};
  absl::get<SparseSpec>(model.tables[2].rows).max_rows = 64;
  return model;
}

void StepByChance(SmallTraining* training, std::mt19937* random) {
  TableValues gradients;
  if ((*random)() % 2 == 0) gradients.dense["x"] = RandomFloats(30, random);
  if ((*random)() % 4 == 0) gradients.dense["y"] = RandomFloats(6300, random);
  for (uint32_t i = (*random)() % 40; i > 0; --i) {
    gradients.rows["rows"][(*random)() % 300] = RandomFloats(2, random);
  }
  absl::Status status = training->Push(0, gradients);
  if (status.ok()) status = training->Settle();
  ASSERT_TRUE(status.ok()) << status;
}

TEST(CheckpointTrainingTest, ChainsOfIncrementalOnesHaveEverything) {
  for (uint64_t seed = ChosenSeeds().first(); ChosenSeeds().Wants(seed);
       ++seed) {
    SCOPED_TRACE(RepeatWith(seed));
    std::mt19937 random(static_cast<uint32_t>(seed));
    MemoryFiles files;
    SmallTraining::Options options = Of(2, 1, false);
    options.checkpoints.commits.max_depth = 4;
    SmallTraining training(BoundedModel(), &files, options);
    ASSERT_TRUE(training.Define().ok());
    ASSERT_TRUE(training.Begin().ok());
    size_t longest = 0;
    for (int round = 0; round < 10; ++round) {
      for (uint32_t i = 1 + random() % 3; i > 0; --i) {
        StepByChance(&training, &random);
      }
      if (random() % 3 == 0) {
        // Makes one server write its shard of a checkpoint that is never
        // committed, as if the client had died.
        const auto attempt = training.BeginAttempt(random() % 4 > 0);
        ASSERT_TRUE(attempt.ok()) << attempt.status();
        ASSERT_TRUE(training.writer(random() % 2).Write(*attempt, {}).ok());
      }
      const auto step = training.Checkpoint(random() % 8 > 0, 2);
      ASSERT_TRUE(step.ok()) << step.status();
      const auto chain = checkpoint::OpenChain(&files, *step);
      ASSERT_TRUE(chain.ok()) << chain.status();
      longest = std::max(longest, chain->links.size());
      SmallTraining restored(BoundedModel(), &files, Of(2, 1, true));
      ASSERT_EQ(*restored.Define(), *step);
      ASSERT_TRUE(restored.State() == training.State()) << "round " << round;
    }
    EXPECT_GE(longest, 2u);
    EXPECT_LE(longest, 5u);
  }
}

// A training that takes two checkpoints, with steps before each.
class Interrupted {
 public:
  explicit Interrupted(MemoryFiles* files)
      : training_(BoundedModel(), files, Of(1, 1, false)) {
    EXPECT_TRUE(training_.Define().ok());
    EXPECT_TRUE(training_.Begin().ok());
    StepByChance(&training_, &random_);
    EXPECT_TRUE(training_.Checkpoint().ok());
    first = training_.State();
    StepByChance(&training_, &random_);
    second = training_.State();
  }

  absl::Status Checkpoint() { return training_.Checkpoint(true, 1).status(); }
  void Step() {
    StepByChance(&training_, &random_);
    second = training_.State();
  }

  TrainingState first;
  TrainingState second;

 private:
  std::mt19937 random_{5};
  SmallTraining training_;
};

TEST(CheckpointTrainingTest, KillAtAnyFileOperationLeavesTheLastOne) {
  bool was_reached = true;
  for (int number = 0; was_reached; ++number) {
    MemoryFiles files;
    TrainingState first;
    TrainingState second;
    bool is_acknowledged = false;
    {
      Interrupted training(&files);
      first = training.first;
      second = training.second;
      files.CrashAt(files.operations() + number);
      is_acknowledged = training.Checkpoint().ok();
      was_reached = !files.List("").ok();
    }
    files.Restart(number % 2 == 0 ? Loss::kNothing : Loss::kSome,
                  static_cast<unsigned>(number));
    SmallTraining restored(BoundedModel(), &files, Of(1, 1, true));
    const auto step = restored.Define();
    ASSERT_TRUE(step.ok()) << step.status();
    const TrainingState state = restored.State();
    EXPECT_TRUE(state == second || (state == first && !is_acknowledged))
        << "operation " << number;
  }
}

TEST(CheckpointTrainingTest, ErrorOfAnyFileOperationCostsOneCheckpoint) {
  for (int number = 0;; ++number) {
    MemoryFiles files;
    TrainingState last;
    {
      Interrupted training(&files);
      const int operation = files.operations() + number;
      files.FailOnce(operation, absl::ResourceExhaustedError("disk full"));
      const absl::Status status = training.Checkpoint();
      const bool has_failed = files.operations() > operation;
      if (!has_failed) break;
      training.Step();
      const absl::Status next = training.Checkpoint();
      EXPECT_TRUE(next.ok()) << next << " after " << status;
      last = training.second;
    }
    SmallTraining restored(BoundedModel(), &files, Of(1, 1, true));
    ASSERT_TRUE(restored.Define().ok());
    EXPECT_TRUE(restored.State() == last) << "operation " << number;
  }
}

// Makes each file operation of a restore fail in turn. The servers must never
// get the values of an older checkpoint, and a chief that defines again must
// restore the newest one.
TEST(CheckpointTrainingTest, ErrorOfAnyFileOperationRefusesARestore) {
  MemoryFiles files;
  TrainingState last;
  {
    Interrupted training(&files);
    ASSERT_TRUE(training.Checkpoint().ok());
    last = training.second;
  }
  const auto contents = files.Contents();
  bool was_reached = true;
  int number = 0;
  for (; was_reached; ++number) {
    SmallTraining restored(BoundedModel(), &files, Of(2, 1, true));
    const int operation = files.operations() + number;
    files.FailOnce(operation, absl::ErrnoToStatus(EIO, "read"));
    const auto refused = restored.Define();
    was_reached = files.operations() > operation;
    EXPECT_EQ(refused.ok(), !was_reached) << "operation " << number;
    const auto step = restored.Define();
    ASSERT_TRUE(step.ok()) << step.status() << ", operation " << number;
    EXPECT_TRUE(restored.State() == last) << "operation " << number;
    EXPECT_TRUE(files.Contents() == contents) << "operation " << number;
  }
  EXPECT_GT(number, 10);
}

}  // namespace
}  // namespace penstock::ps

int main(int argc, char** argv) {
  return penstock::ps::RunWithSeeds(argc, argv, 10);
}
