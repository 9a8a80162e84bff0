// Which seeds a random test of the parameter server runs.

#ifndef PENSTOCK_TESTS_PS_SEEDS_H_
#define PENSTOCK_TESTS_PS_SEEDS_H_

#include <cstdint>
#include <string>

namespace penstock::ps {

struct Seeds {
  uint64_t first = 1;
  uint64_t count = 0;

  uint64_t end() const { return first + count; }
  // Prints which seeds have run.
  void Print() const;
};

// Returns the seeds of this program: those of its command line, or as many as
// it has said.
const Seeds& ChosenSeeds();

// Returns the command line that repeats one: "repeat with --seeds=1 --first=7".
std::string RepeatWith(uint64_t seed);

// Is main() of a test with seeds. Takes --first=S and --seeds=N, of which
// `count` is the default, and runs all tests.
int RunWithSeeds(int argc, char** argv, uint64_t count);

}  // namespace penstock::ps

#endif  // PENSTOCK_TESTS_PS_SEEDS_H_
