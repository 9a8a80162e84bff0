#include "transport/base/per_process.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace penstock {
namespace base {
namespace {

struct Counter {
  std::mutex mu;
  int count = 0;
};

TEST(PerProcess, ThreadsGetTheSameObject) {
  std::mutex mu;
  std::set<Counter*> seen;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      Counter* const counter = PerProcess<Counter>::Get();
      std::lock_guard<std::mutex> lock(mu);
      seen.insert(counter);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(seen.size(), 1u);
}

TEST(PerProcess, ChildHasAnotherThatNobodyHasLocked) {
  Counter* const counter = PerProcess<Counter>::Get();
  std::lock_guard<std::mutex> lock(counter->mu);
  counter->count = 1;
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    Counter* const own = PerProcess<Counter>::Get();
    std::lock_guard<std::mutex> lock(own->mu);
    _exit(own != counter && own->count == 0 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(PerProcess<Counter>::Get(), counter);
}

template <size_t kIndex>
struct Numbered {};

template <size_t... kIndexes>
std::vector<void (*)()> GettersOf(std::index_sequence<kIndexes...>) {
  return {[] { (void)PerProcess<Numbered<kIndexes>>::Get(); }...};
}

// Forks while a thread of the parent gets its first object. The child must not
// wait for that thread.
TEST(PerProcess, ChildWaitsForNoFirstUseInItsParent) {
  const std::vector<void (*)()> getters =
      GettersOf(std::make_index_sequence<100>());
  std::atomic<size_t> begun{0};
  std::thread other([&] {
    for (size_t i = 0; i < getters.size(); ++i) {
      while (begun.load() <= i) {
      }
      getters[i]();
    }
  });
  int status = 0;
  for (size_t i = 0; i < getters.size() && status == 0; ++i) {
    begun.store(i + 1);
    const pid_t child = fork();
    if (child == 0) {
      alarm(10);
      getters[i]();
      _exit(0);
    }
    ASSERT_EQ(waitpid(child, &status, 0), child);
  }
  begun.store(getters.size());
  other.join();
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace base
}  // namespace penstock
