#include "transport/paths/short_lives.h"

#include <cstddef>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "transport/base/steady_time.h"

namespace penstock {
namespace paths {
namespace {

constexpr absl::Duration kInstant = absl::Milliseconds(1);

class ShortLivesTest : public testing::Test {
 protected:
  // Ends `count` connections that lived for `life`, one per `pause`.
  void End(size_t count, absl::Duration life,
           absl::Duration pause = absl::ZeroDuration()) {
    for (size_t i = 0; i < count; ++i) {
      now_ += pause;
      lives_.OnEnd(now_ - life, now_);
    }
  }

  absl::Time now_ = base::SteadyNow();
  ShortLives lives_;
};

TEST_F(ShortLivesTest, AreUnusualAtFirst) {
  EXPECT_FALSE(lives_.AreFrequent(now_));
  End(ShortLives::kMany - 1, kInstant);
  EXPECT_FALSE(lives_.AreFrequent(now_));
}

TEST_F(ShortLivesTest, AreUsualIfThereWereManyLately) {
  End(ShortLives::kMany, kInstant);
  EXPECT_TRUE(lives_.AreFrequent(now_));
  EXPECT_TRUE(lives_.AreFrequent(now_ + ShortLives::kWindow));
  EXPECT_FALSE(lives_.AreFrequent(now_ + ShortLives::kWindow + kInstant));
}

TEST_F(ShortLivesTest, StayUsualWhileTheyGoOn) {
  const absl::Duration pause = ShortLives::kWindow / ShortLives::kMany;
  End(10 * ShortLives::kMany, kInstant, pause);
  EXPECT_TRUE(lives_.AreFrequent(now_));
}

TEST_F(ShortLivesTest, AreUnusualIfTheyComeSlowly) {
  const absl::Duration pause = 2 * ShortLives::kWindow / ShortLives::kMany;
  End(10 * ShortLives::kMany, kInstant, pause);
  EXPECT_FALSE(lives_.AreFrequent(now_));
}

TEST_F(ShortLivesTest, LongLivesDoNotCount) {
  End(10 * ShortLives::kMany, ShortLives::kShort);
  EXPECT_FALSE(lives_.AreFrequent(now_));
  End(ShortLives::kMany, ShortLives::kShort - kInstant);
  EXPECT_TRUE(lives_.AreFrequent(now_));
}

}  // namespace
}  // namespace paths
}  // namespace penstock
