// Draws the random choices of a run, which depend on the seed alone.

#ifndef PENSTOCK_TESTS_PS_SIMULATION_DICE_H_
#define PENSTOCK_TESTS_PS_SIMULATION_DICE_H_

#include <cstdint>
#include <random>

namespace penstock::ps {

class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed) {}

  uint64_t Bits() { return random_(); }
  // Returns a random number below `bound`.
  uint64_t Below(uint64_t bound) { return random_() % bound; }
  bool Chance(uint64_t percent) { return Below(100) < percent; }

 private:
  std::mt19937_64 random_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_TESTS_PS_SIMULATION_DICE_H_
