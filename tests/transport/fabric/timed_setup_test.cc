// Tests the beginning of one side's set-up, and its end. The end must happen
// once.

#include "transport/fabric/timed_setup.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/setup_test_util.h"

namespace penstock {
namespace fabric {
namespace {

constexpr absl::Duration kLong = absl::Minutes(10);
constexpr absl::Duration kShort = absl::Milliseconds(20);

using Steps = std::vector<std::string>;

// A setup that records its calls. Used on the loop's thread.
class Work : public TimedSetup {
 public:
  Work(std::shared_ptr<Attempt> attempt, absl::Duration limit,
       std::shared_ptr<Steps> steps)
      : TimedSetup(Loop(), std::move(attempt), limit, "the test's peer slept"),
        steps_(std::move(steps)) {}
  ~Work() override { steps_->push_back("gone"); }

  void Finish(absl::Status status) {
    FinishOnLoop(std::move(status));
    steps_->push_back(has_ended() ? "has ended" : "goes on");
  }

  bool finishes_at_once = false;

 private:
  void BeginOnLoop() override {
    steps_->push_back("begun");
    if (finishes_at_once) FinishOnLoop(absl::NotFoundError("no route"));
  }
  void ReleaseOnLoop() override { steps_->push_back("released"); }

  const std::shared_ptr<Steps> steps_;
};

class TimedSetupTest : public testing::Test {
 protected:
  std::shared_ptr<Work> Make(absl::Duration limit = kLong) {
    auto attempt = std::make_shared<Attempt>(
        "token", [steps = steps_, told = told_](const auto& result) {
          steps->push_back("told");
          *told = result.status();
        });
    return std::make_shared<Work>(std::move(attempt), limit, steps_);
  }
  // Runs `what` on the loop's thread, and then the tasks that `what` has
  // posted.
  static void OnLoop(const std::function<void()>& what) {
    Loop()->Post(what);
    DrainLoop();
  }

  // The recorded calls. Written on the loop's thread, and read after the loop
  // has drained.
  const std::shared_ptr<Steps> steps_ = std::make_shared<Steps>();
  const std::shared_ptr<absl::Status> told_ = std::make_shared<absl::Status>();
};

TEST_F(TimedSetupTest, ReleasesBeforeItTellsAndThenGoes) {
  auto work = Make();
  auto handle = TimedSetup::Launch(work);
  OnLoop([work = std::move(work)] {
    work->Finish(absl::UnavailableError("refused"));
  });
  EXPECT_EQ(*steps_, (Steps{"begun", "released", "told", "has ended", "gone"}));
  EXPECT_TRUE(absl::IsUnavailable(*told_));
}

TEST_F(TimedSetupTest, LivesByItsTimerUntilTheTimeIsOver) {
  absl::Notification late;
  auto attempt = std::make_shared<Attempt>(
      "token", [told = told_, &late](const auto& result) {
        *told = result.status();
        late.Notify();
      });
  auto handle = TimedSetup::Launch(
      std::make_shared<Work>(std::move(attempt), kShort, steps_));
  late.WaitForNotification();
  DrainLoop();
  EXPECT_TRUE(absl::IsDeadlineExceeded(*told_)) << *told_;
  EXPECT_TRUE(absl::StrContains(told_->message(), "peer slept")) << *told_;
  EXPECT_EQ(*steps_, (Steps{"begun", "released", "gone"}));
}

TEST_F(TimedSetupTest, EndsOnce) {
  auto work = Make();
  auto handle = TimedSetup::Launch(work);
  OnLoop([work] {
    work->Finish(absl::UnavailableError("first"));
    work->Finish(absl::InternalError("second"));
    work->StopOnLoop();
    work->StartOnLoop();
  });
  EXPECT_EQ(*steps_,
            (Steps{"begun", "released", "told", "has ended", "has ended"}));
  EXPECT_TRUE(absl::IsUnavailable(*told_));
}

TEST_F(TimedSetupTest, MayFinishInItsFirstStep) {
  auto work = Make();
  work->finishes_at_once = true;
  auto handle = TimedSetup::Launch(std::move(work));
  DrainLoop();
  EXPECT_EQ(*steps_, (Steps{"begun", "released", "told", "gone"}));
  EXPECT_TRUE(absl::IsNotFound(*told_));
}

TEST_F(TimedSetupTest, CancelledWorkIsReleasedAndTellsNothing) {
  auto handle = TimedSetup::Launch(Make());
  DrainLoop();
  handle.reset();
  DrainLoop();
  EXPECT_EQ(*steps_, (Steps{"begun", "released", "gone"}));
}

TEST_F(TimedSetupTest, CancelledBeforeItsTurnItDoesNotBegin) {
  absl::Notification held;
  Loop()->Post([&held] { held.WaitForNotification(); });
  TimedSetup::Launch(Make()).reset();
  held.Notify();
  DrainLoop();
  for (const std::string& step : *steps_) EXPECT_NE(step, "begun");
  EXPECT_EQ(steps_->back(), "gone");
}

// Tests a setup that nobody can cancel. A listener makes such a setup when a
// peer connects.
TEST_F(TimedSetupTest, StartsWithoutAHandle) {
  auto work = Make();
  OnLoop([&work] {
    work->StartOnLoop();
    work = nullptr;
  });
  EXPECT_EQ(*steps_, (Steps{"begun"})) << "its timer keeps it";
}

}  // namespace
}  // namespace fabric
}  // namespace penstock
