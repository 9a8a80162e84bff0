// Tests writers that wait for a disk, and then continue.

#include "ps/tier/shortage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <string>
#include <thread>

#include "absl/time/clock.h"

namespace penstock::ps {
namespace {

using testing::HasSubstr;
using Kind = Shortage::Kind;

Shortage::Pace Quick() {
  Shortage::Pace pace;
  pace.retry = absl::Milliseconds(1);
  pace.first_backoff = absl::Milliseconds(20);
  pace.longest_backoff = absl::Milliseconds(40);
  pace.memory = absl::Seconds(20);
  return pace;
}

// Returns a pace with a very long backoff: a compaction restarts only if
// something else wakes it.
Shortage::Pace Patient() {
  Shortage::Pace pace = Quick();
  pace.first_backoff = absl::Hours(1);
  pace.longest_backoff = absl::Hours(1);
  return pace;
}

class ShortageTest : public testing::Test {
 protected:
  std::unique_ptr<Shortage> Make(Shortage::Pace pace) {
    return std::make_unique<Shortage>([this] { return free_.load(); }, pace);
  }
  static std::string Cause(const Shortage& shortage) {
    return std::string(shortage.status().message());
  }

  std::atomic<uint64_t> free_{0};
};

TEST_F(ShortageTest, EachErrorIsToldUntilItsWriteIsDone) {
  const auto shortage = Make(Quick());
  EXPECT_TRUE(shortage->status().ok());
  for (const auto& [error, cause] :
       {std::pair(ENOSPC, "the disk is full (No space left on device)"),
        std::pair(EDQUOT, "the disk is full (Disk quota exceeded)"),
        std::pair(EIO, "the disk fails (Input/output error)")}) {
    {
      Shortage::Waiting waiting(shortage.get());
      EXPECT_TRUE(shortage->status().ok());
      EXPECT_TRUE(waiting.UntilRetry(error));
      EXPECT_TRUE(waiting.UntilRetry(error));
      EXPECT_TRUE(absl::IsResourceExhausted(shortage->status()));
      EXPECT_EQ(Cause(*shortage), cause);
    }
    EXPECT_TRUE(shortage->status().ok());
  }
}

TEST_F(ShortageTest, AFailedTableIsToldUntilOneOfItsKindIsDone) {
  const auto shortage = Make(Quick());
  shortage->OnFailed(Kind::kFlush, EIO, 1);
  shortage->OnFailed(Kind::kCompaction, ENOSPC, 1);
  shortage->OnDone(Kind::kFlush);
  EXPECT_THAT(Cause(*shortage), HasSubstr("is full"));
  shortage->OnDone(Kind::kCompaction);
  EXPECT_TRUE(shortage->status().ok());
}

// Tests that a failure is forgotten after some time, even without a later
// success: nothing may be left to compact.
TEST_F(ShortageTest, AFailureIsForgotten) {
  Shortage::Pace pace = Quick();
  pace.memory = absl::Milliseconds(5);
  const auto shortage = Make(pace);
  shortage->OnFailed(Kind::kCompaction, ENOSPC, 1);
  while (!shortage->status().ok()) std::this_thread::yield();
}

TEST_F(ShortageTest, ACompactionWithoutAFailureBeginsAtOnce) {
  const auto shortage = Make(Patient());
  shortage->AwaitCompaction();
  shortage->OnFailed(Kind::kFlush, ENOSPC, 1);
  shortage->AwaitCompaction();
}

TEST_F(ShortageTest, AFailedCompactionBacksOff) {
  const auto shortage = Make(Quick());
  for (const int least : {20, 40, 40}) {
    shortage->OnFailed(Kind::kCompaction, ENOSPC, 1 << 20);
    const absl::Time begin = absl::Now();
    shortage->AwaitCompaction();
    EXPECT_GE(absl::Now() - begin, absl::Milliseconds(least - 1));
  }
}

TEST_F(ShortageTest, ACompactionBeginsOnceThereIsRoomForWhatFailed) {
  const auto shortage = Make(Patient());
  shortage->OnFailed(Kind::kCompaction, ENOSPC, 5 << 20);
  std::atomic<bool> is_over{false};
  std::thread compaction([&] {
    shortage->AwaitCompaction();
    is_over = true;
  });
  free_ = 4 << 20;
  absl::SleepFor(absl::Milliseconds(20));
  EXPECT_FALSE(is_over);
  free_ = 100 << 20;
  compaction.join();
}

TEST_F(ShortageTest, CloseWakesWhoeverWaits) {
  Shortage::Pace pace = Patient();
  pace.retry = absl::Hours(1);
  const auto shortage = Make(pace);
  shortage->OnFailed(Kind::kCompaction, ENOSPC, 1);
  std::thread compaction([&] { shortage->AwaitCompaction(); });
  std::thread flush([&] {
    Shortage::Waiting waiting(shortage.get());
    EXPECT_FALSE(waiting.UntilRetry(ENOSPC));
  });
  while (Cause(*shortage).empty()) std::this_thread::yield();
  shortage->Close();
  compaction.join();
  flush.join();
  EXPECT_TRUE(shortage->closed());
}

}  // namespace
}  // namespace penstock::ps
