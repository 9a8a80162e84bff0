// Changes fuzz inputs randomly but reproducibly.

#ifndef PENSTOCK_TESTS_FUZZ_MUTATOR_H_
#define PENSTOCK_TESTS_FUZZ_MUTATOR_H_

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace penstock {
namespace fuzz {

// Changes inputs at random. Unlike libFuzzer, does not know the coverage of its
// changes. Needs at least one seed. The seeds must outlive the mutator.
class Mutator {
 public:
  Mutator(const std::vector<std::string>& seeds, uint32_t random_seed)
      : seeds_(seeds), random_(random_seed) {}

  // Returns one of the seeds with one or more changes.
  std::string Next();

 private:
  // Returns a number below `bound`, which is not 0. Avoids std's distributions,
  // which differ between libraries.
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
