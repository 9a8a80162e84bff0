#include "transport/paths/half_open.h"

#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "gtest/gtest.h"
#include "transport/metrics/registry.h"

namespace penstock {
namespace paths {
namespace {

TEST(HalfOpen, LetsInAsManyAsItsLimit) {
  HalfOpen half_open(2);
  const HalfOpen::Slot first = half_open.Enter();
  const HalfOpen::Slot second = half_open.Enter();
  EXPECT_NE(first, nullptr);
  EXPECT_NE(second, nullptr);
  EXPECT_EQ(half_open.Enter(), nullptr);
}

TEST(HalfOpen, WhoLeavesMakesRoom) {
  HalfOpen half_open(1);
  for (int i = 0; i < 10; ++i) {
    const HalfOpen::Slot place = half_open.Enter();
    EXPECT_NE(place, nullptr) << i;
    EXPECT_EQ(half_open.Enter(), nullptr) << i;
  }
}

TEST(HalfOpen, StrangersTakeNoPlaceFromTokenHolders) {
  std::vector<HalfOpen::Slot> strangers;
  do {
    strangers.push_back(HalfOpen::Get()->Enter());
  } while (strangers.back() != nullptr);
  EXPECT_EQ(strangers.size(), 4097u);
  EXPECT_NE(HalfOpen::OfTokenHolders()->Enter(), nullptr);
}

TEST(HalfOpen, TheChildOfAForkHasALimitOfItsOwn) {
  const HalfOpen::Slot parents = HalfOpen::Get()->Enter();
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(20);
    const HalfOpen::Slot mine = HalfOpen::Get()->Enter();
    const metrics::Snapshot shown = metrics::Registry::Get()->Collect();
    _exit(shown.Get(metrics::Metric::kHalfOpen, {}) == 1 &&
                  shown.Get(metrics::Metric::kHalfOpenLimit, {}) == 4096
              ? 0
              : 1);
  }
  int status = -1;
  waitpid(pid, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace paths
}  // namespace penstock
