// Makes random choices that are equal on each machine.

#ifndef PENSTOCK_TESTS_ORACLE_RANDOM_H_
#define PENSTOCK_TESTS_ORACLE_RANDOM_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <random>

namespace penstock::oracle {

// Uses the standard's engine, but not its distributions, which differ between
// libraries.
class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) { engine_.discard(8); }

  uint64_t Bits() { return engine_(); }
  // Returns a number in [0, end).
  size_t Below(size_t end) { return engine_() % end; }
  // Returns a number in [from, to].
  size_t Between(size_t from, size_t to) { return from + Below(to - from + 1); }
  bool Percent(size_t chance) { return Below(100) < chance; }
  template <typename T>
  T OneOf(std::initializer_list<T> choices) {
    return choices.begin()[Below(choices.size())];
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace penstock::oracle

#endif  // PENSTOCK_TESTS_ORACLE_RANDOM_H_
