// Draws random inputs, and loops over the processor's vector targets.

#ifndef PENSTOCK_TESTS_PS_OPTIM_RANDOM_VALUES_H_
#define PENSTOCK_TESTS_PS_OPTIM_RANDOM_VALUES_H_

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <random>
#include <vector>

#include "hwy/targets.h"

namespace penstock::ps::optim {

// Returns and prints PENSTOCK_TEST_SEED, or a seed that differs between runs.
inline uint64_t NewSeed() {
  const char* const given = std::getenv("PENSTOCK_TEST_SEED");
  const uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10)
                                         : std::random_device()();
  std::cout << "seed " << seed << " (PENSTOCK_TEST_SEED repeats it)\n";
  return seed;
}

// Returns magnitudes from 1e-6 to 1e3, and some zeros, of both signs.
template <typename T>
std::vector<T> RandomValues(size_t count, std::mt19937_64* random) {
  std::uniform_real_distribution<double> exponent(-6, 3);
  std::bernoulli_distribution negative(0.5), zero(0.05);
  std::vector<T> values(count);
  for (T& value : values) {
    const double magnitude =
        zero(*random) ? 0 : std::pow(10, exponent(*random));
    value = static_cast<T>(negative(*random) ? -magnitude : magnitude);
  }
  return values;
}

template <typename T>
bool SameBits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

// Calls `test` once for each vector target that is compiled and that this
// processor supports. Selects that target during the call. Selects the best
// target afterwards.
inline void OnEachTarget(const std::function<void(int64_t target)>& test) {
  for (int64_t left = hwy::SupportedTargets(); left != 0; left &= left - 1) {
    hwy::SetSupportedTargetsForTest(left & -left);
    test(left & -left);
    hwy::SetSupportedTargetsForTest(0);
  }
}

}  // namespace penstock::ps::optim

#endif  // PENSTOCK_TESTS_PS_OPTIM_RANDOM_VALUES_H_
