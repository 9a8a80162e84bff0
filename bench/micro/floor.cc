// Measures the minimal cost of a message that one core copies once and another
// core reads, without a transport. A lower bound for every transport with a
// copy.

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "benchmark/benchmark.h"

namespace penstock {
namespace bench {
namespace {

// The messages of one direction, in memory that both threads share. They rotate
// through 1 MiB, as in the arena.
class Messages {
 public:
  explicit Messages(size_t words)
      : words_(words), memory_(std::max(words, kRovingWords)) {}

  uint64_t* At(int64_t round) {
    return memory_.data() + round % (memory_.size() / words_) * words_;
  }

 private:
  static constexpr size_t kRovingWords = (1 << 20) / sizeof(uint64_t);

  const size_t words_;
  std::vector<uint64_t> memory_;
};

// A second thread, which takes turns with the first: Do(round) makes it call
// `work(round)`.
class Other {
 public:
  explicit Other(std::function<void(int64_t)> work)
      : thread_([this, work] {
          for (int64_t round = 0; Await(2 * round + 1); ++round) {
            work(round);
            turn_.store(2 * round + 2, std::memory_order_release);
          }
        }) {}
  ~Other() {
    turn_.store(kEnd, std::memory_order_release);
    thread_.join();
  }

  // Makes the thread run `work(round)`, and waits until it has returned.
  void Do(int64_t round) {
    turn_.store(2 * round + 1, std::memory_order_release);
    Await(2 * round + 2);
  }

 private:
  static constexpr int64_t kEnd = -1;

  bool Await(int64_t mine) {
    for (;;) {
      const int64_t now = turn_.load(std::memory_order_acquire);
      if (now == mine || now == kEnd) return now == mine;
      sched_yield();
    }
  }

  std::atomic<int64_t> turn_{0};
  std::thread thread_;
};

// Fills a message in the same way as bench/rpc.
void Fill(std::vector<uint64_t>* words, uint64_t seed) {
  for (uint64_t& word : *words) word = seed += 0x9e3779b97f4a7c15;
}

uint64_t Sum(const uint64_t* words, size_t size) {
  uint64_t sums[4] = {};
  for (size_t i = 0; i + 4 <= size; i += 4) {
    for (size_t lane = 0; lane < 4; ++lane) sums[lane] += words[i + lane];
  }
  return sums[0] + sums[1] + sums[2] + sums[3];
}

void CopiedAndReadElsewhere(benchmark::State& state) {
  const std::vector<uint64_t> from(state.range(0) / 8, 7);
  Messages messages(from.size());
  uint64_t sum = 0;
  Other reader(
      [&](int64_t round) { sum = Sum(messages.At(round), from.size()); });
  int64_t round = 0;
  for (auto _ : state) {
    std::memcpy(messages.At(round), from.data(), 8 * from.size());
    reader.Do(round++);
  }
  if (sum != 7 * from.size()) state.SkipWithError("wrong sum");
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(CopiedAndReadElsewhere)->Arg(64 << 10)->Arg(1 << 20)->UseRealTime();

// Measures the same work as bench/rpc's latency, without an RPC: request and
// reply are filled, copied and read.
void EchoedWithOneCopy(benchmark::State& state) {
  const size_t words = state.range(0) / 8;
  Messages requests(words), replies(words);
  std::vector<uint64_t> request(words), reply(words);
  uint64_t at_server = 0, at_client = 0;
  Other server([&](int64_t round) {
    at_server = Sum(requests.At(round), words);
    Fill(&reply, round);
    std::memcpy(replies.At(round), reply.data(), 8 * words);
  });
  int64_t round = 0;
  for (auto _ : state) {
    Fill(&request, round);
    std::memcpy(requests.At(round), request.data(), 8 * words);
    server.Do(round);
    at_client = Sum(replies.At(round), words);
    ++round;
  }
  if (at_server != at_client) state.SkipWithError("not what was sent");
}
BENCHMARK(EchoedWithOneCopy)->Arg(64 << 10)->Arg(1 << 20)->UseRealTime();

}  // namespace
}  // namespace bench
}  // namespace penstock
