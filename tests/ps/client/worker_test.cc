// Tests workers and servers in one process, over real connections.

#include "ps/client/worker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "ps/client/awaited.h"
#include "ps/client/reader.h"
#include "tests/ps/client/cluster.h"

namespace penstock::ps {
namespace {

using tensor::Bundle;
using tensor::Tensor;

constexpr int64_t kBig = 2 << 20;  // 8 MiB: split between servers

Tensor Filled(tensor::Shape shape, float value) {
  Tensor tensor = *Tensor::Allocate(tensor::DType::kF32, std::move(shape));
  absl::Span<float> elements = *tensor.mutable_flat<float>();
  std::fill(elements.begin(), elements.end(), value);
  return tensor;
}

std::vector<float> Elements(const Tensor& tensor) {
  std::vector<float> elements(tensor.num_elements());
  std::memcpy(elements.data(), tensor.bytes().data(), tensor.byte_size());
  return elements;
}

// Returns a model with a split table, two tables of a pack, a table with its
// own part, and a sparse table.
Model TestModel(int64_t staleness = 0) {
  Model model;
  model.tables = {DenseSpecOf("big", {kBig / 4, 4}, staleness),
                  DenseSpecOf("bias", {3}, staleness),
                  DenseSpecOf("scale", {}, staleness),
                  DenseSpecOf("kernel", {100, 100}, staleness),
                  SparseSpecOf("rows", 2, staleness)};
  return model;
}

Bundle Values(float value) {
  Bundle bundle;
  bundle.tensors = {{"big", Filled({kBig / 4, 4}, value)},
                    {"bias", Filled({3}, value)},
                    {"scale", Filled({}, value)},
                    {"kernel", Filled({100, 100}, value)}};
  return bundle;
}

class WorkerTest : public testing::Test {
 protected:
  std::unique_ptr<Worker> Chief(const Model& model, float value) {
    auto defined = Define(cluster_.DefinitionOf(model));
    EXPECT_TRUE(defined.ok()) << defined.status();
    Worker::Options options;
    options.connection = defined->connection;
    auto worker = Worker::Join(std::move(options));
    EXPECT_TRUE(worker.ok()) << worker.status();
    EXPECT_TRUE(defined->wants_values);
    absl::Status status = (*worker)->Initialize(Values(value));
    EXPECT_TRUE(status.ok()) << status;
    return *std::move(worker);
  }

  static void ExpectAll(const Pulled& pulled, float value) {
    for (const tensor::NamedTensor& named : pulled.AllDense().tensors) {
      for (const float element : Elements(named.tensor)) {
        ASSERT_EQ(element, value) << named.name;
      }
    }
  }

  Cluster cluster_{2};
};

TEST_F(WorkerTest, StepsOfAllTablesGoThereAndBack) {
  auto worker = Chief(TestModel(), 10);
  PullSpec spec;
  spec.rows = {{"rows", {7, 9, 7}}};
  for (uint64_t step = 0; step < 3; ++step) {
    auto pulled = worker->Pull(step, spec);
    ASSERT_TRUE(pulled.ok()) << pulled.status();
    EXPECT_EQ(pulled->clock(), step);
    ExpectAll(*pulled, 10.0f - 2 * step);
    // Expects three gradients each: id 7 occurs twice in each push.
    const float moved = -3.0f * step;
    EXPECT_EQ(Elements(pulled->Rows(0)),
              (std::vector<float>{2 * moved, 2 * moved, moved, moved, 2 * moved,
                                  2 * moved}));
    StepGradients gradients{Values(2),
                            {{"rows", {7, 9, 7}, Filled({3, 2}, 3)}}};
    auto pushed = worker->Push(step, gradients);
    ASSERT_TRUE(pushed.ok()) << pushed.status();
    EXPECT_TRUE(pushed->counted());
  }
  worker->Leave();
  EXPECT_EQ(cluster_.core(0).report().workers_lost, 0u);
}

TEST_F(WorkerTest, TheNextPullOverlapsAndIsThereWhenItIsWanted) {
  auto worker = Chief(TestModel(), 0);
  Awaited<absl::StatusOr<Pulled>> last;
  const auto on_last = last.Callback();
  // Starts the next step in each callback, without waiting.
  std::function<void(uint64_t, const Pulled&)> step =
      [&](uint64_t at, const Pulled& pulled) {
        ExpectAll(pulled, -1.0f * at);
        worker->StartPush(at, {Values(1), {}}, [](const auto& pushed) {
          EXPECT_TRUE(pushed.ok() && pushed->counted());
        });
        worker->StartPull(at + 1, {}, [&, at](absl::StatusOr<Pulled> next) {
          if (!next.ok() || at == 4) return on_last(std::move(next));
          step(at + 1, *next);
        });
      };
  step(0, *worker->Pull(0));
  auto pulled = last.Wait();
  ASSERT_TRUE(pulled.ok()) << pulled.status();
  ExpectAll(*pulled, -5);
}

TEST_F(WorkerTest, ManyPushesWaitForOneAnother) {
  auto worker = Chief(TestModel(ConsistencyPolicy::kUnlimited), 0);
  constexpr int kSteps = 20;
  std::vector<uint64_t> order;
  absl::Notification all;
  for (uint64_t step = 0; step < kSteps; ++step) {
    worker->StartPush(step, {Values(1), {}}, [&, step](const auto& pushed) {
      EXPECT_TRUE(pushed.ok() && pushed->counted()) << pushed.status();
      order.push_back(step);
      if (order.size() == kSteps) all.Notify();
    });
  }
  all.WaitForNotification();
  for (uint64_t step = 0; step < kSteps; ++step) EXPECT_EQ(order[step], step);
  for (size_t server = 0; server < 2; ++server) {
    EXPECT_EQ(cluster_.core(server).report().pushes.counted, kSteps);
  }
}

TEST_F(WorkerTest, HalfOfThePrecisionIsHalfOfTheBytes) {
  auto worker = Chief(TestModel(), 3);
  PullSpec spec;
  spec.dtype = tensor::DType::kBF16;
  spec.rows = {{"rows", {1, 1}}};
  auto pulled = worker->Pull(0, spec);
  ASSERT_TRUE(pulled.ok()) << pulled.status();
  for (const tensor::NamedTensor& named : pulled->AllDense().tensors) {
    ASSERT_EQ(named.tensor.dtype(), tensor::DType::kBF16) << named.name;
    for (size_t i = 0; i < named.tensor.byte_size(); i += 2) {
      uint16_t bits = 0;
      std::memcpy(&bits, named.tensor.bytes().data() + i, 2);
      ASSERT_EQ(bits, 0x4040);  // 3 in bf16
    }
  }
  EXPECT_EQ(pulled->Rows(0).ToString(), "bf16[2,2]");
}

TEST_F(WorkerTest, OnlyWhatIsAskedForComes) {
  auto worker = Chief(TestModel(), 3);
  PullSpec spec;
  spec.all_dense = false;
  spec.dense = {"bias"};
  auto pulled = worker->Pull(0, spec);
  ASSERT_TRUE(pulled.ok()) << pulled.status();
  EXPECT_EQ(Elements(*pulled->Dense("bias")), std::vector<float>(3, 3));
  EXPECT_TRUE(absl::IsNotFound(pulled->Dense("kernel").status()));
  spec.dense = {"no such"};
  EXPECT_TRUE(absl::IsInvalidArgument(worker->Pull(0, spec).status()));
  spec.dense = {};
  EXPECT_TRUE(worker->Pull(0, spec).ok());  // only waits
}

// Tests tables that are views of packs. The views are made together.
TEST_F(WorkerTest, EachOfManySmallTablesIsItself) {
  constexpr int kTables = 100;
  Model model;
  Bundle values;
  for (int i = 0; i < kTables; ++i) {
    const std::string name = absl::StrCat("table ", i);
    model.tables.push_back(DenseSpecOf(name, {i}));
    values.tensors.push_back({name, Filled({i}, static_cast<float>(i))});
  }
  auto defined = Define(cluster_.DefinitionOf(model));
  ASSERT_TRUE(defined.ok()) << defined.status();
  Worker::Options options;
  options.connection = defined->connection;
  auto worker = Worker::Join(std::move(options));
  ASSERT_TRUE(worker.ok()) << worker.status();
  ASSERT_TRUE((*worker)->Initialize(values).ok());
  auto pulled = (*worker)->Pull(0, {});
  ASSERT_TRUE(pulled.ok()) << pulled.status();
  for (const tensor::NamedTensor& named : values.tensors) {
    EXPECT_EQ(Elements(*pulled->Dense(named.name)), Elements(named.tensor));
  }
  const Bundle all = pulled->AllDense();
  pulled = absl::CancelledError();  // the tensors outlive the pull
  ASSERT_EQ(all.tensors.size(), values.tensors.size());
  for (int i = 0; i < kTables; ++i) {
    EXPECT_EQ(all.tensors[i].name, values.tensors[i].name);
    EXPECT_EQ(all.tensors[i].tensor.ToString(),
              values.tensors[i].tensor.ToString());
    EXPECT_EQ(Elements(all.tensors[i].tensor),
              Elements(values.tensors[i].tensor));
  }
}

TEST_F(WorkerTest, WhatDoesNotFitIsRefusedByName) {
  auto worker = Chief(TestModel(), 3);
  const auto refused = [&](StepGradients gradients, const char* why) {
    const absl::Status status = worker->Push(0, gradients).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_NE(status.message().find(why), std::string::npos) << status;
  };
  refused({{{{"bias", Filled({4}, 1)}}}, {}}, "f32[3], and was given f32[4]");
  refused({{{{"bia", Filled({3}, 1)}}}, {}}, "table bia: the model has no");
  refused(
      {{{{"kernel", Filled({100, 100}, 1)}, {"kernel", Filled({100, 100}, 1)}}},
       {}},
      "kernel: it was given twice");
  refused({{}, {{"rows", {1, 2}, Filled({2, 3}, 1)}}}, "shape [2,2]");
  refused({{}, {{"rows", {1}, Filled({1, 2}, 1)}, {"rows", {}, {}}}}, "twice");
  refused({{}, {{"bias", {1}, Filled({1, 2}, 1)}}}, "no sparse table");
  EXPECT_TRUE(worker->Push(0, {Values(1), {}})->counted());
}

TEST_F(WorkerTest, TwoWorkersAreAveraged) {
  Cluster cluster(2, 2);
  auto defined = Define(cluster.DefinitionOf(TestModel()));
  ASSERT_TRUE(defined.ok()) << defined.status();
  const auto run = [&](uint32_t rank, float gradient) {
    Worker::Options options;
    options.rank = rank;
    options.connection = defined->connection;
    if (rank != 0) {  // like another process, which waits for the chief
      TrainingConnection::Options open;
      open.servers = cluster.Channels();
      auto opened = TrainingConnection::Open(open);
      ASSERT_TRUE(opened.ok()) << opened.status();
      options.connection = *opened;
    }
    auto worker = *Worker::Join(std::move(options));
    if (rank == 0) {
      ASSERT_TRUE(worker->Initialize(Values(10)).ok());
    }
    for (uint64_t step = worker->clock(); step < 3; ++step) {
      auto pulled = worker->Pull(step);
      ASSERT_TRUE(pulled.ok()) << pulled.status();
      ExpectAll(*pulled, 10 - 2.0f * step);
      auto pushed = worker->Push(step, {Values(gradient), {}});
      ASSERT_TRUE(pushed.ok() && pushed->counted()) << pushed.status();
    }
    worker->Leave();
  };
  std::thread other([&] { run(1, 3); });
  run(0, 1);
  other.join();
  Reader reader(defined->connection);
  auto pulled = reader.Pull(3, {}, absl::Minutes(1));
  ASSERT_TRUE(pulled.ok()) << pulled.status();
  ExpectAll(*pulled, 4);
}

TEST_F(WorkerTest, AChiefThatComesAgainGoesOn) {
  auto worker = Chief(TestModel(), 5);
  ASSERT_TRUE(worker->Push(0, {Values(1), {}})->counted());
  worker = nullptr;
  auto defined = Define(cluster_.DefinitionOf(TestModel()));
  ASSERT_TRUE(defined.ok()) << defined.status();
  EXPECT_TRUE(defined->is_adopted);
  EXPECT_FALSE(defined->wants_values);
  Worker::Options options;
  options.connection = defined->connection;
  worker = *Worker::Join(std::move(options));
  EXPECT_EQ(worker->clock(), 1u);
  ASSERT_TRUE(worker->Initialize(Values(77)).ok());
  auto pulled = worker->Pull(1);
  ASSERT_TRUE(pulled.ok()) << pulled.status();
  ExpectAll(*pulled, 4);

  Model other = TestModel();
  other.tables[1].optimizer.schedule.learning_rate = 2;
  const absl::Status status = Define(cluster_.DefinitionOf(other)).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_NE(status.message().find("bias"), std::string::npos) << status;
}

TEST_F(WorkerTest, AServerThatWasStartedAnewIsNamed) {
  auto worker = Chief(TestModel(), 5);
  ASSERT_TRUE(worker->Push(0, {Values(1), {}}).ok());  // begins the run
  cluster_.Stop(1);
  cluster_.Start(1);
  const std::string name = absl::StrCat("server 1 (", cluster_.Address(1), ")");
  for (const absl::Status& status :
       {worker->Pull(1).status(), worker->Push(1, {Values(1), {}}).status(),
        TrainingConnection::Open({cluster_.Channels(), absl::Minutes(1), false})
            .status(),
        Define(cluster_.DefinitionOf(TestModel())).status()}) {
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_NE(status.message().find(name), std::string::npos) << status;
    EXPECT_NE(status.message().find("restarted"), std::string::npos) << status;
  }
}

TEST_F(WorkerTest, ChannelsInAnotherOrderAreNoticed) {
  auto worker = Chief(TestModel(), 5);
  TrainingConnection::Channels channels = cluster_.Channels();
  std::swap(channels[0], channels[1]);
  absl::Status status = TrainingConnection::Open({channels}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  channels.pop_back();
  status = TrainingConnection::Open({channels}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
}

TEST_F(WorkerTest, ABlockingCallInACallbackIsRefused) {
  auto worker = Chief(TestModel(), 5);
  Awaited<absl::Status> inner;
  worker->StartPull(0, {}, [&](absl::StatusOr<Pulled>) {
    inner.Callback()(worker->Pull(0).status());
  });
  EXPECT_TRUE(absl::IsFailedPrecondition(inner.Wait()));
}

TEST_F(WorkerTest, DestroyingTheWorkerEndsEachCallOnce) {
  auto worker = Chief(TestModel(), 5);
  Worker::Options options;
  options.rank = 1;
  options.connection = *TrainingConnection::Open({cluster_.Channels()});
  auto other = *Worker::Join(std::move(options));
  std::vector<absl::Status> ends;
  // Starts pulls that wait for ever: no worker takes the steps before step 7.
  for (int i = 0; i < 5; ++i) {
    worker->StartPull(
        7, {}, [&](const auto& pulled) { ends.push_back(pulled.status()); });
  }
  // Makes the push of step 1 wait for `other`. Step 1 was not pulled.
  ASSERT_TRUE(worker->Push(0, {Values(1), {}}).ok());
  worker->StartPush(1, {Values(1), {}}, [&](const auto& pushed) {
    ends.push_back(pushed.status());
  });
  worker = nullptr;
  ASSERT_EQ(ends.size(), 6u);
  for (const absl::Status& end : ends) {
    EXPECT_TRUE(absl::IsCancelled(end)) << end;
  }
}

// Tests that a worker with a slow callback stays a member. Heartbeats have
// their own thread. Silent members, whose leases end one by one, show the time.
TEST_F(WorkerTest, AWorkerWhoseCallbackTakesLongStaysAMember) {
  constexpr uint32_t kSilent = 3;
  absl::Mutex mu;
  uint32_t lost = 0;
  Cluster cluster(1, 1, {}, absl::Milliseconds(300),
                  [&](const std::string& note) {
                    absl::MutexLock lock(&mu);
                    if (absl::StrContains(note, "lost")) ++lost;
                  });
  auto defined = Define(cluster.DefinitionOf(TestModel()));
  Worker::Options options;
  options.connection = defined->connection;
  auto worker = *Worker::Join(std::move(options));
  ASSERT_TRUE(worker->Initialize(Values(1)).ok());
  Awaited<bool> all_lost;
  worker->StartPull(0, {}, [&](const absl::StatusOr<Pulled>&) {
    bool are_lost = true;
    for (uint32_t rank = 1; rank <= kSilent && are_lost; ++rank) {
      const View view = {defined->connection->run(), 1};
      EXPECT_TRUE(cluster.core(0).Join(view, {rank, 1}).ok());
      absl::MutexLock lock(&mu);
      const auto is_lost = [&] { return lost >= rank; };
      are_lost =
          mu.AwaitWithTimeout(absl::Condition(&is_lost), absl::Seconds(30));
    }
    all_lost.Callback()(are_lost);
  });
  EXPECT_TRUE(all_lost.Wait());
  EXPECT_EQ(cluster.core(0).report().workers_lost, kSilent);
  EXPECT_EQ(cluster.core(0).report().live_workers, 1u);
}

}  // namespace
}  // namespace penstock::ps
