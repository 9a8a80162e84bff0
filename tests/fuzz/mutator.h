// Random changes of fuzz inputs, the same for the same seed.

#ifndef PENSTOCK_TESTS_FUZZ_MUTATOR_H_
#define PENSTOCK_TESTS_FUZZ_MUTATOR_H_

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace penstock {
namespace fuzz {

// Without knowledge of what its changes reach, other than libFuzzer's. Needs at
// least one seed, all of which outlive it.
class Mutator {
 public:
  Mutator(const std::vector<std::string>& seeds, uint32_t random_seed)
      : seeds_(seeds), random_(random_seed) {}

  // One of the seeds, changed in one place or a few.
  std::string Next();

 private:
  // Below `bound`, which is not 0. Not std's distribution, whose numbers differ
  // between libraries.
  size_t Below(size_t bound) { return random_() % bound; }
  const std::string& AnySeed() { return seeds_[Below(seeds_.size())]; }
  std::string SomeOf(const std::string& text);
  void Change(std::string* text);
  void Overwrite(std::string* text);

  const std::vector<std::string>& seeds_;
  std::mt19937 random_;
};

}  // namespace fuzz
}  // namespace penstock

#endif  // PENSTOCK_TESTS_FUZZ_MUTATOR_H_
