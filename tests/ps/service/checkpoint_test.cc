// Tests checkpoints of servers of this process, over stock gRPC and on a real
// disk.

#include "ps/client/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "ps/access/access.h"
#include "ps/access/policy.h"
#include "ps/checkpoint/chain.h"
#include "ps/client/periodic_checkpoints.h"
#include "ps/consistency/membership.h"
#include "ps/service/service.h"
#include "ps/wire/ps.grpc.pb.h"
#include "tensor_service/status.h"
#include "tests/ps/access/certificates.h"
#include "tests/ps/service/checkpoint_fixture.h"
#include "tests/ps/service/held_files.h"
#include "tests/ps/service/node.h"

namespace penstock::ps {
namespace {

using ::testing::HasSubstr;

TEST_F(CheckpointServiceTest, TrainingGoesOnAtMoreServers) {
  Start(2, WithFolder());
  for (uint64_t step = 0; step < 2; ++step) Step(step);
  ASSERT_TRUE(worker_->Pull(2).ok());
  auto full = Take(true);
  ASSERT_TRUE(full.ok()) << full.status();
  EXPECT_EQ(full->step, 2u);
  EXPECT_FALSE(full->is_incremental);
  Step(2);
  ASSERT_TRUE(worker_->Pull(3).ok());
  const auto second = Take(true);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_TRUE(second->is_incremental);
  const auto report =
      Describe(defined_.connection->channels()[0], absl::Seconds(10));
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->last_checkpoint_step(), 3u);
  for (uint64_t step = 3; step < 5; ++step) Step(step);
  const std::string uncut = ValuesAt(5);

  Node::Options options = WithFolder();
  options.restore = true;
  Start(3, options);
  EXPECT_EQ(defined_.restored_step, 3u);
  ASSERT_FALSE(defined_.wants_values);
  ASSERT_EQ(worker_->clock(), 3u);
  for (uint64_t step = 3; step < 5; ++step) Step(step);
  EXPECT_TRUE(ValuesAt(5) == uncut);
}

// Tests the progress that a waiting caller sees. The files block the servers
// until the caller has seen the progress of all bytes.
TEST_F(CheckpointServiceTest, WhoWaitsIsToldHowMuchOfAllServersIsWritten) {
  HeldFiles held(files_.get());
  Node::Options on_held_files;
  on_held_files.files = &held;
  Start(2, on_held_files);
  Step(0);
  ASSERT_TRUE(worker_->Pull(1).ok());
  // The bytes of the tables and of two rows, each with a slot.
  constexpr uint64_t kAll = 2 * (2000 * 1000 + 1 + 2 * 2) * sizeof(float);
  CheckpointOptions options;
  options.timeout = absl::Minutes(1);
  std::atomic<uint64_t> most{0};
  options.written = [&](uint64_t done, uint64_t total) {
    EXPECT_LE(done, total);
    EXPECT_LE(total, kAll);
    if (most == kAll || done < kAll) return;
    most = done;
    held.Release();
  };
  const auto taken = TakeCheckpoint(*defined_.connection, options);
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_EQ(most, kAll);
  const auto after =
      Describe(defined_.connection->channels()[0], absl::Seconds(10));
  ASSERT_TRUE(after.ok());
  EXPECT_EQ(after->checkpoint_total_bytes(), 0u);
}

TEST_F(CheckpointServiceTest, ServerWithoutAFolderNamesTheFlag) {
  Start(1, {});
  const absl::Status status = Take().status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("--checkpoints=DIR"));
}

TEST_F(CheckpointServiceTest, OnlyAnAdministratorMay) {
  AccessPolicy policy;
  policy.rules = *ParseRules("train dns:trainer.test", "a test's");
  Access access(policy, true);
  const Authority authority;
  const Bearer server = authority.Issue({"", {}, {"server.test"}});
  const Bearer trainer = authority.Issue({"", {}, {"trainer.test"}});
  grpc::SslServerCredentialsOptions tls(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  tls.pem_root_certs = authority.certificate();
  tls.pem_key_cert_pairs.push_back({server.key, server.certificate});

  Node::Options options = WithFolder();
  options.access = &access;
  options.security = grpc::SslServerCredentials(tls);
  options.peers_security = grpc::SslCredentials(
      {authority.certificate(), trainer.key, trainer.certificate});
  Start(1, options);
  Step(0);
  EXPECT_TRUE(absl::IsPermissionDenied(Take().status()));
  EXPECT_EQ(WriteShard(0, {}, 0, absl::Minutes(1)).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
}

TEST_F(CheckpointServiceTest, RequestOfAnotherRunIsRefused) {
  Start(1, WithFolder());
  v1::BeginCheckpointRequest request;
  request.mutable_view()->set_run(view().run() + 1);
  grpc::ClientContext context;
  v1::CheckpointAttempt attempt;
  EXPECT_EQ(Stub(0)->BeginCheckpoint(&context, request, &attempt).error_code(),
            grpc::StatusCode::ABORTED);
}

// Tests a caller that is cancelled. The server must stop its work for this
// caller. Otherwise it would wait for an hour, and answer no other checkpoint
// call.
TEST_F(CheckpointServiceTest, CallerWhoGivesUpFreesTheServer) {
  Start(1, WithFolder());
  Step(0);
  ASSERT_TRUE(worker_->Pull(1).ok());
  const v1::CheckpointAttempt attempt = Begin();
  EXPECT_EQ(WriteShard(0, attempt, 1000, absl::Milliseconds(50)).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  const auto taken = Take();
  ASSERT_TRUE(taken.ok()) << taken.status();
}

TEST_F(CheckpointServiceTest, VersionThatHasPassedIsOutOfRange) {
  Start(1, WithFolder());
  Step(0);
  ASSERT_TRUE(worker_->Pull(1).ok());
  EXPECT_EQ(WriteShard(0, Begin(), 0, absl::Minutes(1)).error_code(),
            grpc::StatusCode::OUT_OF_RANGE);
}

TEST_F(CheckpointServiceTest, ACutBeyondAllClocksIsRefused) {
  Start(1, WithFolder());
  Step(0);
  const v1::CheckpointAttempt attempt = Begin();
  EXPECT_EQ(
      WriteShard(0, attempt, kMaxClock + 1, absl::Minutes(1)).error_code(),
      grpc::StatusCode::INVALID_ARGUMENT);
  v1::WriteShardRequest write;
  *write.mutable_view() = view();
  *write.mutable_attempt() = attempt;
  v1::WorkerClock* const clock = write.mutable_cut()->add_clocks();
  write.mutable_cut()->set_version(1);
  for (const auto& [rank, at] :
       {std::pair<uint32_t, uint64_t>{kMaxRanks, 1}, {0, kMaxClock + 1}}) {
    clock->mutable_worker()->set_rank(rank);
    clock->set_clock(at);
    grpc::ClientContext context;
    v1::ShardInfo shard;
    EXPECT_EQ(Stub(0)->WriteShard(&context, write, &shard).error_code(),
              grpc::StatusCode::INVALID_ARGUMENT);
  }
  Step(1);
}

TEST_F(CheckpointServiceTest, DrainEndsTheWaitForAVersion) {
  Start(1, WithFolder());
  const v1::CheckpointAttempt attempt = Begin();
  std::thread caller([&] {
    EXPECT_EQ(WriteShard(0, attempt, 1000, absl::Minutes(1)).error_code(),
              grpc::StatusCode::UNAVAILABLE);
  });
  nodes_[0]->core().Drain();
  caller.join();
}

// Tests a commit that arrives during a drain, after all shards were written.
TEST_F(CheckpointServiceTest, DrainingServerCommitsWhatIsWritten) {
  Start(2, WithFolder());
  Step(0);
  ASSERT_TRUE(worker_->Pull(1).ok());
  const v1::CheckpointAttempt attempt = Begin();
  const v1::CommitCheckpointRequest written = WriteShards(attempt, 1);
  for (const auto& node : nodes_) node->core().Drain();
  Commit(written);
  const auto steps = checkpoint::ListSteps(files_.get());
  ASSERT_TRUE(steps.ok()) << steps.status();
  EXPECT_THAT(*steps, testing::ElementsAre(1u));
  EXPECT_EQ(WriteShard(0, attempt, 1, absl::Minutes(1)).error_code(),
            grpc::StatusCode::UNAVAILABLE);
}

// Tests that a commit of another run changes nothing.
TEST_F(CheckpointServiceTest, CommitOfAnotherRunIsRefused) {
  Start(1, WithFolder());
  Step(0);
  ASSERT_TRUE(worker_->Pull(1).ok());
  v1::CommitCheckpointRequest request = WriteShards(Begin(), 1);
  request.mutable_view()->set_run(view().run() + 1);
  grpc::ClientContext context;
  v1::CommitCheckpointReply reply;
  EXPECT_EQ(Stub(0)->CommitCheckpoint(&context, request, &reply).error_code(),
            grpc::StatusCode::ABORTED);
  request.mutable_view()->set_run(view().run());
  Commit(request);
}

// Tests a server that has written so many shards since the base that it has
// forgotten the base.
TEST_F(CheckpointServiceTest, FullOneIsTakenIfAServerCannotGoOn) {
  Start(2, WithFolder());
  Step(0);
  ASSERT_TRUE(worker_->Pull(1).ok());
  ASSERT_TRUE(Take(true).ok());
  Step(1);
  ASSERT_TRUE(worker_->Pull(2).ok());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(WriteShard(1, Begin(), 2, absl::Minutes(1)).ok());
  }
  const auto taken = Take(true);
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_FALSE(taken->is_incremental);
}

// Tests that only a lost base leads to a full checkpoint.
TEST_F(CheckpointServiceTest, AFailedIncrementalOneIsNotRepeatedAsAFullOne) {
  HeldFiles files(files_.get());
  files.Release();
  Node::Options on_these_files;
  on_these_files.files = &files;
  Start(2, on_these_files);
  Step(0);
  ASSERT_TRUE(worker_->Pull(1).ok());
  ASSERT_TRUE(Take(true).ok());
  Step(1);
  ASSERT_TRUE(worker_->Pull(2).ok());
  files.FailOnce(absl::InternalError("the disk fails once"));
  const absl::Status failed = Take(true).status();
  EXPECT_THAT(std::string(failed.message()), HasSubstr("the disk fails once"));
  const auto taken = Take(true);
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_TRUE(taken->is_incremental);
}

// Tests short steps: a server may already have passed a version when the
// message with that version arrives.
TEST_F(CheckpointServiceTest, StepsMayBeShorterThanACall) {
  rows_of_big_ = 1;
  Start(2, WithFolder());
  std::atomic<bool> is_over{false};
  std::thread trainer([&] {
    for (uint64_t step = 0; !is_over; ++step) {
      Step(step);
      ASSERT_TRUE(worker_->Pull(step + 1).ok());
    }
  });
  for (int i = 0; i < 5; ++i) {
    const auto taken = Take(true);
    if (absl::IsAlreadyExists(taken.status())) continue;
    EXPECT_TRUE(taken.ok()) << taken.status();
  }
  is_over = true;
  trainer.join();
}

class PeriodicTest : public CheckpointServiceTest {
 protected:
  // Starts two servers, and makes a step. Returns options for them.
  PeriodicCheckpoints::Options BeginPeriodic() {
    Start(2, WithFolder());
    Step(0);
    EXPECT_TRUE(worker_->Pull(1).ok());
    PeriodicCheckpoints::Options options;
    options.interval = absl::Milliseconds(1);
    options.servers = [this] {
      return defined_.connection->placement().servers();
    };
    options.connect = [this](const std::string& server) {
      ++connections_;
      return nodes_[server == nodes_[0]->address() ? 0 : 1]->Connect();
    };
    return options;
  }

  std::atomic<int> connections_{0};
};

TEST_F(PeriodicTest, CheckpointsComeAtIntervalsOverTheSameConnections) {
  PeriodicCheckpoints::Options options = BeginPeriodic();
  absl::Notification taken[2];
  size_t count = 0;
  options.failed = [](const absl::Status& status) { FAIL() << status; };
  options.log = [&](const std::string& line) {
    ASSERT_LT(count, 2u) << line;
    EXPECT_THAT(line, HasSubstr(absl::StrCat("checkpoint of step ", ++count)));
    taken[count - 1].Notify();
  };
  PeriodicCheckpoints checkpoints(options);
  taken[0].WaitForNotification();
  Step(1);
  taken[1].WaitForNotification();
  EXPECT_EQ(connections_, 2);
}

TEST_F(PeriodicTest, TheErrorOfAPeriodicCheckpointIsReportedOnce) {
  PeriodicCheckpoints::Options options = BeginPeriodic();
  absl::Notification failed;
  options.checkpoint.timeout = absl::ZeroDuration();
  options.failed = [&](const absl::Status&) {
    if (!failed.HasBeenNotified()) failed.Notify();
  };
  options.log = [](const std::string& line) { FAIL() << line; };
  {
    PeriodicCheckpoints checkpoints(options);
    EXPECT_TRUE(failed.WaitForNotificationWithTimeout(absl::Seconds(30)));
  }
  // Expects that server 0 was not told as well.
  const auto report =
      Describe(defined_.connection->channels()[0], absl::Seconds(10));
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->checkpoint_failures(), 0u);
}

TEST_F(CheckpointServiceTest, ACheckpointWaitsForALostServerOnlySoLong) {
  absl::Notification failed;
  PeriodicCheckpoints::Options options;
  options.interval = absl::Milliseconds(1);
  options.reach = absl::Milliseconds(100);
  options.servers = [] { return std::vector<std::string>{"127.0.0.1:1"}; };
  options.connect = [](const std::string& server) {
    return grpc::CreateChannel(server, grpc::InsecureChannelCredentials());
  };
  options.failed = [&](const absl::Status& status) {
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
    if (!failed.HasBeenNotified()) failed.Notify();
  };
  options.log = [](const std::string&) {};
  PeriodicCheckpoints checkpoints(options);
  EXPECT_TRUE(failed.WaitForNotificationWithTimeout(absl::Seconds(30)));
}

}  // namespace
}  // namespace penstock::ps
