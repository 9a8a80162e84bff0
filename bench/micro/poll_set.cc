// Measures how long a waiting thread takes to poll the paths of its process
// once.

#include "transport/progress/poll_set.h"

#include <atomic>
#include <memory>
#include <vector>

#include "benchmark/benchmark.h"

namespace penstock {
namespace bench {
namespace {

class FakePath : public progress::Pollable {
 public:
  bool Poll() override {
    input.store(false, std::memory_order_relaxed);
    return true;
  }
  bool HasInput() const override {
    return input.load(std::memory_order_relaxed);
  }
  void SetArmed(bool) override {}

  std::atomic<bool> input{false};
};

// Measures a poll of many paths. One path always has input; the others are
// idle.
void PollIdlePaths(benchmark::State& state) {
  progress::PollSet set(1);
  std::vector<std::shared_ptr<FakePath>> paths;
  for (int64_t i = 0; i <= state.range(0); ++i) {
    paths.push_back(std::make_shared<FakePath>());
    set.Add(paths.back());
  }
  for (auto _ : state) {
    paths.back()->input.store(true, std::memory_order_relaxed);
    if (!set.PollAll()) state.SkipWithError("input not found");
  }
}
BENCHMARK(PollIdlePaths)->Arg(0)->Arg(1)->Arg(100);

// Measures a poll by a thread that has spun for a long time and so no longer
// polls idle paths.
void PollHotAmongIdlePaths(benchmark::State& state) {
  constexpr int kSpinsForLong = 1000;
  progress::PollSet set(1);
  std::vector<std::shared_ptr<FakePath>> paths;
  for (int64_t i = 0; i <= state.range(0); ++i) {
    paths.push_back(std::make_shared<FakePath>());
    set.Add(paths.back());
  }
  for (int i = 0; i < kSpinsForLong; ++i) {
    set.BeginSpin();
    paths.back()->input.store(true, std::memory_order_relaxed);
    set.PollAll();
    set.EndSpin();
  }
  if (!set.BeginSpin()) state.SkipWithError("no place for a spinner");
  for (auto _ : state) {
    paths.back()->input.store(true, std::memory_order_relaxed);
    if (!set.PollHot()) state.SkipWithError("input not found");
  }
  set.EndSpin();
}
BENCHMARK(PollHotAmongIdlePaths)->Arg(1)->Arg(100);

// Measures the cost of starting and ending a wait.
void BeginAndEndSpin(benchmark::State& state) {
  progress::PollSet set(1);
  for (int64_t i = 0; i < state.range(0); ++i) {
    set.Add(std::make_shared<FakePath>());
  }
  for (auto _ : state) {
    if (!set.BeginSpin()) state.SkipWithError("no place for a spinner");
    benchmark::DoNotOptimize(set.EndSpin());
  }
}
BENCHMARK(BeginAndEndSpin)->Arg(1)->Arg(100);

}  // namespace
}  // namespace bench
}  // namespace penstock
