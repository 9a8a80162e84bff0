// Chooses the seeds that a random test of the parameter server runs.

#ifndef PENSTOCK_TESTS_PS_SEEDS_H_
#define PENSTOCK_TESTS_PS_SEEDS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace penstock::ps {

// A range of seeds. Loop: for (seed = seeds.first(); seeds.Wants(seed);
// ++seed).
class Seeds {
 public:
  // Makes a range of `count` seeds. `time` limits a loop; the first seed always
  // runs.
  Seeds(uint64_t first, uint64_t count, absl::Duration time)
      : first_(first), count_(count), time_(time) {}

  uint64_t first() const { return first_; }
  // Returns true if the loop should continue with `seed`.
  bool Wants(uint64_t seed);
  // Returns the number of seeds that the last loop has run.
  uint64_t ran() const { return ran_; }
  // Prints the seeds of the last loop.
  void Print() const;

 private:
  const uint64_t first_;
  const uint64_t count_;
  const absl::Duration time_;
  absl::Time end_;
  uint64_t ran_ = 0;
};

// Returns the seeds of this program. Seeds from the command line have no time
// limit. The default seeds run for SEEDS_SECONDS (default 5) at most. They
// begin with 1, or at random if SEEDS_FIRST is "random".
Seeds& ChosenSeeds();

// Returns the flags that repeat a seed: "repeat with --seeds=1 --first=7".
std::string RepeatWith(uint64_t seed);

// Calls `run` for each of ChosenSeeds(), and prints the seeds. Stops at the
// first failure, and prints the flags that repeat its seed.
void RunEachSeed(const std::function<void(uint64_t seed)>& run);

// The number of times that each event has happened.
using EventCounts = std::map<std::string, uint64_t>;
void Print(const EventCounts& counts);

// Calls Simulation(seed).Run(), which returns the first error or "", for each
// of ChosenSeeds(). Stops at the first error. Prints and returns the sums of
// all counts().
template <typename Simulation>
EventCounts SimulateEachSeed() {
  EventCounts sums;
  RunEachSeed([&sums](uint64_t seed) {
    Simulation simulation(seed);
    ASSERT_EQ(simulation.Run(), "");
    for (const auto& [event, count] : simulation.counts()) sums[event] += count;
  });
  Print(sums);
  return sums;
}

// Runs all tests of a program with seeds. Call it from main(). Takes the flags
// --first=S and --seeds=N. `count` is the default of --seeds.
int RunWithSeeds(int argc, char** argv, uint64_t count);

}  // namespace penstock::ps

#endif  // PENSTOCK_TESTS_PS_SEEDS_H_
