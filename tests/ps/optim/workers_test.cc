#include "ps/optim/workers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace penstock::ps::optim {
namespace {

TEST(WorkersTest, EachTaskRunsOnceAndAllBeforeTheReturn) {
  for (int threads : {0, 1, 2, 7}) {
    const Workers workers(threads);
    for (size_t tasks : {0, 1, 2, 1000}) {
      std::vector<int> runs(tasks);
      workers.ForEach(tasks, [&](size_t i) { ++runs[i]; });
      EXPECT_EQ(runs, std::vector<int>(tasks, 1));
    }
  }
}

TEST(WorkersTest, ThereAreAsManyThreadsAsAreAskedFor) {
  EXPECT_EQ(Workers(3).threads(), 3);
  EXPECT_GE(Workers().threads(), 1);
}

TEST(WorkersTest, SeveralThreadsMayShareThem) {
  const Workers workers(2);
  std::atomic<int> runs(0);
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      for (int k = 0; k < 50; ++k) {
        std::vector<int> own(20);
        workers.ForEach(20, [&](size_t task) { ++own[task]; });
        for (int run : own) runs += run;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(runs, 4 * 50 * 20);
}

}  // namespace
}  // namespace penstock::ps::optim
