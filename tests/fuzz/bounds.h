// Random inputs whose numbers have any size, and limits on what an input costs.

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

// Draws inputs until a time budget is used up. Prints its seed.
// BOUNDS_SEED repeats a run. BOUNDS_SECONDS is the budget; 1 if
// unset. Not thread-safe.
class Random {
 public:
  // Limits the address space of the process, so that a runaway allocation fails
  // in this process and harms no other.
  Random();

  // Returns true until the time budget is used up.
  bool GoesOn() const;

  // Returns a number below `limit`, uniformly. Needs limit > 0.
  uint64_t Below(uint64_t limit) { return bits_() % limit; }
  bool OneIn(uint64_t n) { return Below(n) == 0; }
  // Returns a number of at most `bits` bits, log-uniformly: each length in bits
  // is as likely as the others. One in four is next to a power of two.
  uint64_t Number(int bits);
  // Returns Number() as little-endian bytes.
  template <typename T>
  std::string Field() {
    return fuzz::Number(static_cast<T>(Number(8 * sizeof(T))));
  }
  // Returns `good` mostly, else Number().
  template <typename T>
  T Mostly(T good) {
    return OneIn(32) ? static_cast<T>(Number(8 * sizeof(T))) : good;
  }
  // Returns random bytes, log-uniformly many and at most `most`.
  std::string Text(size_t most);

 private:
  std::mt19937_64 bits_;
  time_t end_;
};

// Measures from its construction on: the growth of the heap, and the processor
// time of this thread. Needs no other thread that allocates.
class Cost {
 public:
  Cost();

  // Fails if more than `budget` and 64 bytes for each byte of the input are
  // held, or if more than 0.1 s and 1 us for each byte were used.
  ::testing::AssertionResult IsWithin(size_t input_bytes,
                                      uint64_t budget) const;

 private:
  const uint64_t held_before_;
  const double seconds_before_;
};

// Feeds inputs of `make` to `consume` as long as `random` goes on. What
// consume() returns is held while the cost is looked at.
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
