// Several callers of checkpoints: each waits for its turn.

#include <gtest/gtest.h>

#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "ps/client/checkpoint.h"
#include "tests/ps/service/checkpoint_fixture.h"

namespace penstock::ps {
namespace {

// The first caller goes on when the second one waits.
TEST_F(CheckpointServiceTest, SecondCallerJoinsTheRunningCheckpoint) {
  Node::Options options = WithFolder();
  options.lease = absl::InfiniteDuration();
  Start(2, options);
  Step(0);
  ASSERT_TRUE(worker_->Pull(1).ok());
  const v1::CheckpointAttempt first = Begin();
  CheckpointOptions second;
  second.progress = [&](absl::string_view line) {
    if (absl::StrContains(line, "waits for step 1")) Commit(first, 1);
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
    // Both servers fail to create their shards.
    if (absl::StrContains(line, "writes")) {
      std::filesystem::remove_all(root_ + "/step-0000000001");
    }
  };
  EXPECT_FALSE(TakeCheckpoint(*defined_.connection, failing).ok());
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
