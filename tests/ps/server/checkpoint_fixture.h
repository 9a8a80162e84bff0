// A fixture of small trainings that write checkpoints to memory.

#ifndef PENSTOCK_TESTS_PS_SERVER_CHECKPOINT_FIXTURE_H_
#define PENSTOCK_TESTS_PS_SERVER_CHECKPOINT_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdint>

#include "ps/model/model.h"
#include "ps/optim/optimizer.h"
#include "tests/ps/checkpoint/memory_files.h"
#include "tests/ps/server/small_server.h"
#include "tests/ps/server/small_training.h"

namespace penstock::ps {

inline optim::OptimizerConfig Adam() {
  optim::OptimizerConfig config;
  config.rule = optim::Rule::kAdam;
  return config;
}

// Returns a synchronous model with two packed tables, one that is not packed,
// and a sparse table.
inline Model SmallModel() {
  Model model;
  model.tables = {DenseTable("a", {3}), DenseTable("b", {2, 2}),
                  DenseTable("large", {100, 50}), SparseTable("e", 2)};
  for (TableSpec& table : model.tables) table.optimizer = Adam();
  return model;
}

// Returns gradients of all tables. The gradients differ between steps.
inline TableValues Gradients(uint64_t step) {
  const float x = 1 + static_cast<float>(step);
  TableValues values;
  values.dense["a"] = {x, -x, 2};
  values.dense["b"] = {1, x, 1, -x};
  values.dense["large"].assign(5000, x);
  values.rows["e"] = {{step, {x, -1}}, {1000, {1, x}}, {~step, {3, x}}};
  return values;
}

class CheckpointTest : public testing::Test {
 protected:
  static SmallTraining::Options Of(size_t servers, bool restore = false) {
    SmallTraining::Options options;
    options.servers = servers;
    options.restore = restore;
    return options;
  }

  static void Start(SmallTraining* training) {
    ASSERT_TRUE(training->Define().ok());
    const absl::Status begun = training->Begin();
    ASSERT_TRUE(begun.ok()) << begun;
  }
  static void Step(SmallTraining* training) {
    absl::Status status = training->Push(0, Gradients(training->clock(0)));
    if (status.ok()) status = training->Settle();
    ASSERT_TRUE(status.ok()) << status;
  }

  static ServerReport Report(SmallTraining* training) {
    return ReportOf(training->server(0), &training->writer(0));
  }

  // Returns the state that a new training restores onto this many servers.
  TrainingState Restored(size_t servers, uint64_t step = 0) {
    SmallTraining::Options options = Of(servers, true);
    options.step = step;
    SmallTraining training(SmallModel(), &files_, options);
    const auto restored = training.Define();
    EXPECT_TRUE(restored.ok()) << restored.status();
    return restored.ok() ? training.State() : TrainingState();
  }

  checkpoint::MemoryFiles files_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_TESTS_PS_SERVER_CHECKPOINT_FIXTURE_H_
