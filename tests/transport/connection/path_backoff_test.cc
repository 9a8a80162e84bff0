#include "transport/connection/path_backoff.h"

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace penstock {
namespace connection {
namespace {

absl::Time At(int seconds) {
  return absl::UnixEpoch() + absl::Seconds(seconds);
}

TEST(PathBackoff, PausesDoubleFromASecondToAMinute) {
  PathBackoff backoff;
  for (int expected : {1, 2, 4, 8, 16, 32, 60, 60}) {
    EXPECT_EQ(backoff.Next(), absl::Seconds(expected));
  }
}

TEST(PathBackoff, PathThatHeldForTheLongestPauseBeginsAnew) {
  PathBackoff backoff;
  for (int i = 0; i < 5; ++i) backoff.Next();
  backoff.OnPathChosen(/*is_best=*/true, At(100));
  backoff.OnPathChosen(/*is_best=*/false, At(160));
  EXPECT_EQ(backoff.Next(), absl::Seconds(1));
}

TEST(PathBackoff, PathThatIsSoonLostAgainDoesNotBeginAnew) {
  PathBackoff backoff;
  for (int i = 0; i < 3; ++i) backoff.Next();
  backoff.OnPathChosen(/*is_best=*/true, At(100));
  backoff.OnPathChosen(/*is_best=*/false, At(159));
  EXPECT_EQ(backoff.Next(), absl::Seconds(8));
}

TEST(PathBackoff, TimeWithoutTheBestPathDoesNotCount) {
  PathBackoff backoff;
  for (int i = 0; i < 3; ++i) backoff.Next();
  backoff.OnPathChosen(/*is_best=*/false, At(0));
  backoff.OnPathChosen(/*is_best=*/false, At(600));
  EXPECT_EQ(backoff.Next(), absl::Seconds(8));
}

}  // namespace
}  // namespace connection
}  // namespace penstock
