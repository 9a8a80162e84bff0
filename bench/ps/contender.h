// The contenders of a benchmark, which run in turn.

#ifndef PENSTOCK_BENCH_PS_CONTENDER_H_
#define PENSTOCK_BENCH_PS_CONTENDER_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"

namespace penstock::bench {

struct Contender {
  std::string name;
  double bytes;  // the bytes that `run` moves or makes
  std::function<void()> run;
  // The measured times, by round.
  std::vector<double> seconds = {};
  std::vector<double> cpu_seconds = {};  // of all threads
};

// The flags that all benchmarks with contenders have.
struct ContenderFlags {
  size_t mebibytes = 64;
  int rounds = 15;
  int threads = 0;  // 0: as many as there are processors
};

// Adds the flags to `app`. `size_of` names the object whose size is --mib.
// Parsing fills `flags`.
void DeclareFlags(CLI::App* app, const char* size_of, ContenderFlags* flags);

// Runs all contenders in each round, so that a disturbance affects all alike.
// Each round begins with another contender. A further round before the first
// one warms up, and is not counted.
void RunAll(int rounds, std::vector<Contender>* contenders);

// Returns the median, the shortest and the longest time: "1.23 (1.20-1.31)".
std::string MillisecondsOf(const Contender& contender);

}  // namespace penstock::bench

#endif  // PENSTOCK_BENCH_PS_CONTENDER_H_
