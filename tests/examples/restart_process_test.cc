// Tests servers that are killed in mid-training, and started again with the
// same command, as by systemd and Kubernetes. The workers' processes must
// continue, and end with 0.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "ps/client/checkpoint.h"
#include "ps/client/training_connection.h"
#include "tensor_service/status.h"
#include "tests/process/child.h"

namespace penstock {
namespace {

using process::Child;

constexpr int kWorkers = 2;
constexpr uint64_t kCheckpoint = 20;
constexpr uint64_t kKill = 30;
constexpr uint64_t kSteps = 40;

struct Case {
  const char* name;
  const char* staleness;
  std::vector<size_t> killed;
};

std::ostream& operator<<(std::ostream& out, const Case& each) {
  return out << each.name;
}

class RestartProcessTest : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/checkpoints-XXXXXX";
    ASSERT_NE(mkdtemp(&folder_[0]), nullptr);
    for (int i = 0; i < 2; ++i) {
      servers_.push_back(StartServer("127.0.0.1:0"));
      ASSERT_NE(servers_.back(), nullptr);
      const auto port = servers_.back()->Find("port ");
      ASSERT_TRUE(port.has_value());
      addresses_.push_back(absl::StrCat("127.0.0.1:", *port));
    }
    for (int rank = 0; rank < kWorkers; ++rank) {
      workers_.push_back(Child::Start(
          {"examples/digits/digits_worker", "--gate", "--hidden=16",
           absl::StrCat("--steps=", kSteps), absl::StrCat("--rank=", rank),
           absl::StrCat("--workers=", kWorkers),
           absl::StrCat("--staleness=", GetParam().staleness),
           absl::StrCat("--servers=", absl::StrJoin(addresses_, ","))}));
      ASSERT_NE(workers_.back(), nullptr);
    }
  }
  void TearDown() override {
    workers_.clear();
    servers_.clear();
    std::filesystem::remove_all(folder_);
  }

  // Starts a server. Each start uses the same command.
  std::unique_ptr<Child> StartServer(const std::string& address) const {
    return Child::Start({"ps/ps_server", absl::StrCat("--listen=", address),
                         absl::StrCat("--workers=", kWorkers),
                         absl::StrCat("--checkpoints=", folder_),
                         "--restore=newest", "--quiet"});
  }
  void StartAgain(size_t server) {
    servers_[server] = StartServer(addresses_[server]);
    ASSERT_TRUE(servers_[server]->Find("port ").has_value());
  }

  void AwaitGate(uint64_t step) {
    for (auto& worker : workers_) {
      ASSERT_TRUE(worker->Find(absl::StrCat("gate ", step)).has_value())
          << worker->Fate();
    }
  }
  void TrainTo(uint64_t step) {
    for (auto& worker : workers_) worker->Tell(absl::StrCat(step, "\n"));
  }

  ps::TrainingConnection::Channels Channels() const {
    ps::TrainingConnection::Channels channels;
    for (const std::string& address : addresses_) {
      channels.push_back(
          grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(),
                                    tensor::UnlimitedMessages()));
    }
    return channels;
  }
  void Checkpoint() {
    const auto connection = ps::TrainingConnection::Open({Channels()});
    ASSERT_TRUE(connection.ok()) << connection.status();
    const auto taken = ps::TakeCheckpoint(**connection, {});
    ASSERT_TRUE(taken.ok()) << taken.status();
    ASSERT_EQ(taken->step, kCheckpoint);
  }
  // Expects that each push was applied exactly once, or was made after the
  // checkpoint. A step of synchronous tables has the pushes of all workers.
  void ExpectAllSteps() {
    const uint64_t pushes = kSteps * kWorkers;
    int tables = 0;
    const bool synchronous = std::string(GetParam().staleness) == "0";
    for (const auto& channel : Channels()) {
      auto report = ps::Describe(channel, absl::Seconds(10));
      // Waits until all acknowledged pushes are applied, which happens soon.
      while (report.ok() && report->held_bytes() > 0) {
        report = ps::Describe(channel, absl::Seconds(10));
      }
      ASSERT_TRUE(report.ok()) << report.status();
      EXPECT_EQ(report->restored_step(), kCheckpoint);
      for (const auto& table : report->tables()) {
        if (table.bytes() == 0) continue;  // another server has the table
        ++tables;
        EXPECT_EQ(table.steps(), synchronous ? kSteps : pushes) << table.name();
      }
    }
    EXPECT_EQ(tables, 6);  // two for each layer
  }

  std::string folder_;
  std::vector<std::string> addresses_;
  std::vector<std::unique_ptr<Child>> servers_;
  std::vector<std::unique_ptr<Child>> workers_;
};

INSTANTIATE_TEST_SUITE_P(
    , RestartProcessTest,
    testing::Values(Case{"OneSynchronous", "0", {1}},
                    Case{"AllSynchronous", "0", {0, 1}},
                    Case{"OneAsynchronous", "unlimited", {0}},
                    Case{"AllAsynchronous", "unlimited", {0, 1}}),
    [](const auto& info) { return info.param.name; });

TEST_P(RestartProcessTest, TrainingSurvivesServersThatAreKilled) {
  ASSERT_NO_FATAL_FAILURE(AwaitGate(0));
  TrainTo(kCheckpoint);
  ASSERT_NO_FATAL_FAILURE(AwaitGate(kCheckpoint));
  ASSERT_NO_FATAL_FAILURE(Checkpoint());
  TrainTo(kKill);
  ASSERT_NO_FATAL_FAILURE(AwaitGate(kKill));
  // Suspends the servers before killing them, so that the workers' calls are in
  // progress at that time.
  for (const size_t at : GetParam().killed) servers_[at]->Suspend();
  TrainTo(kSteps);
  for (const size_t at : GetParam().killed) servers_[at]->Kill();
  for (const size_t at : GetParam().killed) {
    ASSERT_NO_FATAL_FAILURE(StartAgain(at));
  }
  ASSERT_NO_FATAL_FAILURE(AwaitGate(kCheckpoint));
  TrainTo(kSteps);
  ASSERT_NO_FATAL_FAILURE(AwaitGate(kSteps));
  ExpectAllSteps();
  TrainTo(kSteps);
  EXPECT_TRUE(workers_[0]->Find("result ").has_value());
  for (auto& worker : workers_) EXPECT_EQ(worker->Finish(), 0);
}

}  // namespace
}  // namespace penstock
