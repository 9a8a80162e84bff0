// What a message costs that is copied once by one core and read by another one,
// with nothing around it: no transport with a copy takes less.

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "benchmark/benchmark.h"

namespace penstock {
namespace bench {
namespace {

// As the arena's messages do, those of this benchmark take turns over so much.
constexpr size_t kRovingWords = (1 << 20) / sizeof(uint64_t);

// Four sums at once, as bench/rpc reads its messages.
uint64_t Sum(const uint64_t* words, size_t size) {
  uint64_t sums[4] = {};
  for (size_t i = 0; i + 4 <= size; i += 4) {
    for (size_t lane = 0; lane < 4; ++lane) sums[lane] += words[i + lane];
  }
  return sums[0] + sums[1] + sums[2] + sums[3];
}

void Await(const std::atomic<int64_t>& turn, int64_t wanted) {
  while (turn.load(std::memory_order_acquire) != wanted) sched_yield();
}

void CopiedAndReadElsewhere(benchmark::State& state) {
  const std::vector<uint64_t> from(state.range(0) / 8, 7);
  const size_t size = from.size();
  std::vector<uint64_t> shared(std::max(size, kRovingWords));
  // Where the message of a turn lies.
  const auto place = [&shared, size](int64_t turn) {
    return shared.data() + turn / 2 % (shared.size() / size) * size;
  };
  std::atomic<int64_t> turn{0};  // even: the copier's; negative: the end
  std::atomic<uint64_t> sum{0};
  std::thread reader([&] {
    for (int64_t mine = 1;; mine += 2) {
      int64_t now;
      while ((now = turn.load(std::memory_order_acquire)) != mine) {
        if (now < 0) return;
        sched_yield();
      }
      sum = Sum(place(mine), size);
      turn.store(mine + 1, std::memory_order_release);
    }
  });
  int64_t mine = 0;
  for (auto _ : state) {
    std::memcpy(place(mine), from.data(), 8 * size);
    turn.store(mine + 1, std::memory_order_release);
    mine += 2;
    Await(turn, mine);
  }
  turn.store(-1, std::memory_order_release);
  reader.join();
  if (sum != 7 * size) state.SkipWithError("wrong sum");
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(CopiedAndReadElsewhere)->Arg(64 << 10)->Arg(1 << 20)->UseRealTime();

}  // namespace
}  // namespace bench
}  // namespace penstock
