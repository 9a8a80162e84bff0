// A keyed hash of ids. Nobody without the key can choose ids that fall into one
// shard or one run of an index.

#ifndef PENSTOCK_PS_SPARSE_HASH_H_
#define PENSTOCK_PS_SPARSE_HASH_H_

#include <cstdint>

#include "ps/random/mix.h"

namespace penstock::ps::sparse {

using ps::Mix;

// The secret key of a process. Draw the seed at random. The key affects only
// speed, never values.
class HashKey {
 public:
  explicit HashKey(uint64_t seed)
      : add_(Mix(seed)), multiply_(Mix(seed + 1) | 1) {}

  // Returns the hash of an id. Folds two multiplications, as wyhash does. The
  // first multiplication mixes in the secret. The second one lets each bit of
  // the first product affect each bit of the result.
  uint64_t operator()(uint64_t id) const {
    return Fold(Fold(id ^ add_, multiply_) ^ 0xa0761d6478bd642f,
                0xe7037ed1a0b428db);
  }

 private:
  static uint64_t Fold(uint64_t a, uint64_t b) {
    const auto product = static_cast<unsigned __int128>(a) * b;
    return static_cast<uint64_t>(product) ^
           static_cast<uint64_t>(product >> 64);
  }

  uint64_t add_;
  uint64_t multiply_;
};

}  // namespace penstock::ps::sparse

#endif  // PENSTOCK_PS_SPARSE_HASH_H_
