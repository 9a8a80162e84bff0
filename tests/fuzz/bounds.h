// Draws log-uniform random inputs, and limits the cost of an input.

#ifndef PENSTOCK_TESTS_FUZZ_BOUNDS_H_
#define PENSTOCK_TESTS_FUZZ_BOUNDS_H_

#include <time.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "tests/fuzz/input.h"

namespace penstock {
namespace fuzz {

// Draws inputs until a time budget is used up. Prints its seed. BOUNDS_SEED
// repeats a run. BOUNDS_SECONDS is the budget, by default 1. Not thread-safe.
class Random {
 public:
  // Limits the process's address space, so that a runaway allocation fails
  // without affecting other processes.
  Random();

  // Returns true until the time budget is used up.
  bool GoesOn() const;

  // Returns a number below `limit`, uniformly. Needs limit > 0.
  uint64_t Below(uint64_t limit) { return bits_() % limit; }
  bool OneIn(uint64_t n) { return Below(n) == 0; }
  // Returns a number of at most `bits` bits, log-uniformly: each bit length is
  // equally likely. A quarter of the numbers is next to a power of two.
  uint64_t Number(int bits);
  // Returns Number() as little-endian bytes.
  template <typename T>
  std::string Field() {
    return fuzz::Number(static_cast<T>(Number(8 * sizeof(T))));
  }
  // Usually returns `good`, and otherwise Number().
  template <typename T>
  T Mostly(T good) {
    return OneIn(32) ? static_cast<T>(Number(8 * sizeof(T))) : good;
  }
  // Returns up to `most` random bytes. The length is log-uniform.
  std::string Text(size_t most);

 private:
  std::mt19937_64 bits_;
  time_t end_;
};

// Measures the growth of the heap and this thread's CPU time since
// construction. No other thread may allocate.
class Cost {
 public:
  Cost();

  // Fails if more than `budget` plus 64 bytes per input byte are held, or if
  // more than 0.1 s plus 1 us per byte were used.
  ::testing::AssertionResult IsWithin(size_t input_bytes,
                                      uint64_t budget) const;

 private:
  const uint64_t held_before_;
  const double seconds_before_;
};

// Feeds inputs of `make` to `consume` until the time budget of `random` is used
// up. Holds the result of consume() while measuring the cost.
template <typename Make, typename Consume>
void HoldsItsBounds(Random* random, uint64_t budget, const Make& make,
                    const Consume& consume) {
  while (random->GoesOn()) {
    const std::string input = make();
    const Cost cost;
    const auto held = consume(input);
    (void)held;
    ASSERT_TRUE(cost.IsWithin(input.size(), budget))
        << ::testing::PrintToString(input.substr(0, 200));
  }
}

}  // namespace fuzz
}  // namespace penstock

#endif  // PENSTOCK_TESTS_FUZZ_BOUNDS_H_
