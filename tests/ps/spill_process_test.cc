// Tests ps_server --spill as a process. Trains a model larger than its memory.
// Kills the server, and another server continues.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "grpcpp/channel.h"
#include "ps/client/checkpoint.h"
#include "ps/client/worker.h"
#include "ps/sparse/options.h"
#include "tests/process/child.h"
#include "tests/ps/only_worker.h"

namespace penstock::ps {
namespace {

namespace fs = std::filesystem;
using process::Child;
using testing::HasSubstr;

constexpr char kServer[] = "ps/ps_server";
constexpr uint32_t kDim = 64;
constexpr uint64_t kRows = 10'000;

// Returns a model that has room for a fifth of the rows.
Model SpillingModel() {
  TableSpec table;
  table.name = "words";
  table.optimizer.rule = optim::Rule::kMomentum;
  table.optimizer.momentum = 0.5;
  table.optimizer.schedule.learning_rate = 1;
  SparseSpec rows;
  rows.dim = kDim;
  rows.above_budget = sparse::AboveBudget::kSpill;
  table.rows = rows;
  rows.budget_bytes = sparse::LeastBudget(OptionsOf(table)) + (size_t{1} << 20);
  table.rows = rows;
  return {{table}};
}

// Returns the value of an element after `pushes` pushes of 1.
float After(int pushes) {
  float value = 0;
  float momentum = 0;
  for (; pushes > 0; --pushes) {
    momentum = momentum / 2 + 1;
    value -= momentum;
  }
  return value;
}

std::vector<uint64_t> Range(uint64_t begin, uint64_t end) {
  std::vector<uint64_t> ids(end - begin);
  std::iota(ids.begin(), ids.end(), begin);
  return ids;
}

class SpillProcessTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/spill-XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    fs::create_directory(folder_ + "/checkpoints");
  }
  void TearDown() override {
    worker_.reset();
    server_.reset();
    fs::remove_all(folder_);
  }

  static std::unique_ptr<Child> Start(const std::vector<std::string>& flags) {
    std::vector<std::string> command = {kServer, "--listen=127.0.0.1:0",
                                        "--workers=1", "--quiet"};
    command.insert(command.end(), flags.begin(), flags.end());
    return Child::Start(command);
  }

  // Starts a server, and becomes its only worker.
  void Begin(std::vector<std::string> flags) {
    flags.push_back(absl::StrCat("--spill=", spill()));
    server_ = Start(flags);
    ASSERT_NE(server_, nullptr);
    const auto port = server_->Find("port ");
    ASSERT_TRUE(port.has_value());
    Worker::Options options;
    options.push_timeout = push_timeout_;
    auto joined = JoinAlone(*port, SpillingModel(), std::move(options));
    ASSERT_TRUE(joined.ok()) << joined.status();
    channel_ = joined->channel;
    restored_step_ = joined->defined.restored_step;
    worker_ = std::move(joined->worker);
    step_ = worker_->clock();
  }

  // Takes a step with gradients of 1 for these ids.
  absl::Status Push(uint64_t begin, uint64_t end) {
    const auto size = static_cast<int64_t>(end - begin);
    StepGradients gradients;
    gradients.rows.push_back(
        {"words", Range(begin, end),
         *tensor::Tensor::Of<float>({size, kDim},
                                    std::vector<float>(size * kDim, 1))});
    return worker_->Push(step_++, gradients).status();
  }

  // Expects that each row has had `pushes` pushes, and half of the rows one
  // more.
  void ExpectPushes(int pushes) {
    PullSpec spec;
    spec.rows = {{"words", Range(0, kRows)}};
    const auto pulled = worker_->Pull(step_, spec);
    ASSERT_TRUE(pulled.ok()) << pulled.status();
    const auto values = *pulled->Rows(0).flat<float>();
    for (uint64_t id = 0; id < kRows; ++id) {
      const float wanted = After(pushes + (id < kRows / 2 ? 0 : 1));
      ASSERT_EQ(values[id * kDim], wanted) << id;
      ASSERT_EQ(values[id * kDim + kDim - 1], wanted) << id;
    }
    const auto report = Describe(channel_, absl::Seconds(20));
    ASSERT_TRUE(report.ok()) << report.status();
    const v1::TableReport& table = report->tables(0);
    EXPECT_EQ(table.rows(), kRows);
    EXPECT_GT(table.spilled_rows(), kRows / 2);
    EXPECT_LE(table.bytes(), table.budget_bytes());
  }

  std::string spill() const { return folder_ + "/rows"; }
  std::set<std::string> Spilled() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(spill())) {
      names.insert(entry.path().filename());
    }
    return names;
  }

  std::string folder_;
  absl::Duration push_timeout_ = absl::Seconds(20);
  std::unique_ptr<Child> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<Worker> worker_;
  uint64_t restored_step_ = 0;
  uint64_t step_ = 0;
};

TEST_F(SpillProcessTest, AModelLargerThanItsMemoryOutlivesItsServer) {
  const std::string checkpoints =
      absl::StrCat("--checkpoints=", folder_, "/checkpoints");
  Begin({checkpoints});
  ASSERT_TRUE(Push(0, kRows).ok());
  ASSERT_TRUE(Push(kRows / 2, kRows).ok());
  ExpectPushes(1);
  const auto checkpoint = TakeCheckpoint(worker_->connection(), {});
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  ASSERT_TRUE(Push(0, kRows).ok());
  server_->Kill();
  worker_.reset();
  const std::set<std::string> left = Spilled();
  ASSERT_EQ(left.size(), 1u);

  Begin({checkpoints, "--restore=newest"});
  EXPECT_EQ(restored_step_, checkpoint->step);
  ExpectPushes(1);
  ASSERT_TRUE(Push(0, kRows).ok());
  ExpectPushes(2);
  EXPECT_EQ(Spilled().size(), 1u);
  EXPECT_NE(Spilled(), left);
  worker_.reset();
  kill(server_->pid(), SIGTERM);
  EXPECT_EQ(server_->Finish(), 0);
  EXPECT_TRUE(Spilled().empty());
}

TEST_F(SpillProcessTest, TheLimitIsKept) {
  push_timeout_ = absl::Seconds(1);
  Begin({"--spill-limit=1MiB"});
  absl::Status refused;
  for (uint64_t id = 0; id < kRows && refused.ok(); id += 500) {
    refused = Push(id, id + 500);
  }
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("1048576 may be"));
}

TEST_F(SpillProcessTest, WrongFlagsAreRefused) {
  const auto limit = Start({"--spill-limit=1MiB"});
  EXPECT_THAT(limit->ReadAll(), HasSubstr("--spill-limit requires --spill"));
  EXPECT_EQ(limit->Finish(), 2);
  const auto folder = Start({"--spill=/proc/rows"});
  EXPECT_THAT(folder->ReadAll(), HasSubstr("rows on disk: make /proc/rows: "));
  EXPECT_EQ(folder->Finish(), 1);
}

}  // namespace
}  // namespace penstock::ps
