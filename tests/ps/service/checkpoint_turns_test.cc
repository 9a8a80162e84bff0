// Tests several callers of checkpoints: each waits for its turn.

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "ps/client/checkpoint.h"
#include "ps/consistency/policy.h"
#include "tests/ps/service/checkpoint_fixture.h"
#include "tests/ps/service/held_files.h"

namespace penstock::ps {
namespace {

// Tests a second caller. The first caller's checkpoint continues once the
// second caller waits.
TEST_F(CheckpointServiceTest, SecondCallerJoinsTheRunningCheckpoint) {
  Node::Options options = WithFolder();
  options.lease = absl::InfiniteDuration();
  Start(2, options);
  Step(0);
  ASSERT_TRUE(worker_->Pull(1).ok());
  const v1::CheckpointAttempt first = Begin();
  CheckpointOptions second;
  second.progress = [&](absl::string_view line) {
    if (absl::StrContains(line, "waits for step 1"))
      Commit(WriteShards(first, 1));
  };
  const auto joined = TakeCheckpoint(*defined_.connection, second);
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_TRUE(joined->is_joined);
  EXPECT_EQ(joined->step, 1u);
  EXPECT_GT(joined->bytes, 0u);
}

TEST_F(CheckpointServiceTest, CallerWhoFailsFreesItsTurn) {
  Node::Options options = WithFolder();
  options.lease = absl::InfiniteDuration();
  Start(2, options);
  Step(0);
  ASSERT_TRUE(worker_->Pull(1).ok());
  CheckpointOptions failing;
  failing.progress = [&](absl::string_view line) {
    // Makes both servers fail to create their shards.
    if (absl::StrContains(line, "writes")) {
      std::filesystem::remove_all(root_ + "/step-0000000001");
    }
  };
  EXPECT_FALSE(TakeCheckpoint(*defined_.connection, failing).ok());
  const auto taken = Take();
  EXPECT_TRUE(taken.ok()) << taken.status();
}

// Lets worker 1 push to server 0 only, so that server 1 waits for its cut.
TEST_F(CheckpointServiceTest, CallerWhoIsInterruptedFreesItsTurn) {
  staleness_ = ConsistencyPolicy::kUnlimited;
  Node::Options options = WithFolder();
  options.lease = absl::InfiniteDuration();
  Start(2, options);
  const View of_run = {view().run(), view().epoch()};
  const WorkerId other = {1, 7};
  for (const auto& node : nodes_) {
    ASSERT_TRUE(node->core().Join(of_run, other).ok());
  }
  const auto push_to = [&](size_t server) {
    nodes_[server]->core().Push(of_run, other, 0, {}, [](const auto& verdict) {
      EXPECT_TRUE(verdict.ok()) << verdict.status();
    });
  };
  push_to(0);
  std::atomic<bool> is_writing{false};
  CheckpointOptions interrupted;
  interrupted.progress = [&](absl::string_view line) {
    is_writing = absl::StrContains(line, "writes");
  };
  interrupted.interrupted = [&] { return is_writing.load(); };
  const auto ended = TakeCheckpoint(*defined_.connection, interrupted);
  EXPECT_TRUE(absl::IsCancelled(ended.status())) << ended.status();
  push_to(1);
  const auto taken = Take();
  EXPECT_TRUE(taken.ok()) << taken.status();
}

// Blocks the thread that would remove the files. The failure must count
// nevertheless.
TEST_F(CheckpointServiceTest, TurnEndsBeforeTheWriteOfTheShard) {
  HeldFiles held(files_.get());
  Node::Options options;
  options.files = &held;
  options.lease = absl::InfiniteDuration();
  Start(1, options);
  Step(0);
  v1::AttendCheckpointRequest attend;
  *attend.mutable_view() = view();
  *attend.mutable_attempt() = Begin();
  std::thread writer(
      [&] { WriteShard(0, attend.attempt(), 1, absl::Minutes(1)); });
  while (Describe(nodes_[0]->Connect(), absl::Minutes(1))
             ->checkpoint_total_bytes() == 0) {
  }
  const auto call = [&](bool gives_up) {
    v1::AttendCheckpointRequest request = attend;
    request.set_give_up(gives_up);
    if (gives_up) request.set_failure("the disk hangs");
    grpc::ClientContext context;
    v1::AttendCheckpointReply reply;
    return Stub(0)->AttendCheckpoint(&context, request, &reply).ok();
  };
  std::thread leaver([&] { call(/*gives_up=*/true); });
  bool has_turn = true;
  for (int i = 0; has_turn && i < 100000; ++i) {
    has_turn = call(/*gives_up=*/false);
  }
  EXPECT_FALSE(has_turn);
  const auto report = Describe(nodes_[0]->Connect(), absl::Minutes(1));
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->checkpoint_failures(), 1u);
  EXPECT_EQ(report->checkpoint_failure(), "the disk hangs");
  held.Release();
  writer.join();
  leaver.join();
  const auto taken = Take();
  EXPECT_TRUE(taken.ok()) << taken.status();
}

TEST_F(CheckpointServiceTest, AttemptThatIsLeftIsGivenUpByTheNext) {
  Start(2, WithFolder());
  Step(0);
  ASSERT_TRUE(worker_->Pull(1).ok());
  ASSERT_TRUE(WriteShard(0, Begin(), 1, absl::Minutes(1)).ok());
  const auto taken = Take(true);
  ASSERT_TRUE(taken.ok()) << taken.status();
  const std::string values = ValuesAt(1);
  Node::Options options = WithFolder();
  options.restore = true;
  Start(1, options);
  EXPECT_EQ(defined_.restored_step, taken->step);
  EXPECT_TRUE(ValuesAt(1) == values);
}

}  // namespace
}  // namespace penstock::ps
