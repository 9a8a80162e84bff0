// Random words that are a pure function of a counter and a key. The words are
// the same on each machine, in any order of calls.

#ifndef PENSTOCK_PS_RANDOM_PHILOX_H_
#define PENSTOCK_PS_RANDOM_PHILOX_H_

#include <array>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "ps/random/mix.h"

namespace penstock::ps {

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

// The constants of Philox-4x32: two factors, and the numbers that are added to
// the halves of the key after each round.
inline constexpr uint32_t kPhiloxFactors[2] = {0xd2511f53, 0xcd9e8d57};
inline constexpr uint32_t kPhiloxSteps[2] = {0x9e3779b9, 0xbb67ae85};
inline constexpr int kPhiloxRounds = 10;

// Returns the four words that Philox-4x32-10 makes of `counter` and `key`
// (J. Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011).
inline std::array<uint32_t, 4> Philox(PhiloxCounter counter, PhiloxKey key) {
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const uint64_t first = uint64_t{kPhiloxFactors[0]} * counter[0];
    const uint64_t second = uint64_t{kPhiloxFactors[1]} * counter[2];
    counter = {static_cast<uint32_t>(second >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(second),
               static_cast<uint32_t>(first >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(first)};
    for (int half = 0; half < 2; ++half) key[half] += kPhiloxSteps[half];
  }
  return counter;
}

// Returns the key Mix(seed ^ FNV-1a(name)), low half first.
inline PhiloxKey KeyOf(uint64_t seed, absl::string_view name) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : name) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  const uint64_t key = Mix(seed ^ hash);
  return {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)};
}

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_RANDOM_PHILOX_H_
