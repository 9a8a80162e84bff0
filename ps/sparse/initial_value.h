// Computes a row's value before its first gradient.

#ifndef PENSTOCK_PS_SPARSE_INITIAL_VALUE_H_
#define PENSTOCK_PS_SPARSE_INITIAL_VALUE_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "ps/random/philox.h"

namespace penstock::ps::sparse {

// The distribution of the elements of new rows.
struct Initial {
  enum class Kind { kZeros, kUniform, kNormal };

  Kind kind = Kind::kZeros;
  float low = 0;  // kUniform: from `low`, below `high`
  float high = 1;
  float mean = 0;  // kNormal
  float stddev = 1;
};

// A generator of initial values. They are a pure function of the seed, the
// table's name, the id and the distribution. A row starts with the same bits on
// each server, in any order of creation, and on any machine with IEEE
// arithmetic.
//
// Elements 4b to 4b+3 of the row of `id` come from Philox words with the
// counter (low half of id, high half of id, b, 0) and the key KeyOf(seed,
// table). 24 bits of a word make a uniform value low + (high - low) * u in
// doubles, which never equals `high`. Two words make two normal values (G. Box,
// M. Muller, 1958). Logarithm, sine and cosine are implemented here, because C
// libraries differ between machines. No normal value is more than 5.9 standard
// deviations from the mean.
//
// Immutable and thread-safe.
class InitialValue {
 public:
  InitialValue(const Initial& initial, uint64_t seed, absl::string_view table);

  // Writes the first `dim` elements of the row of `id` to `value`.
  void Fill(uint64_t id, size_t dim, float* value) const;

 private:
  void Transform(const std::array<uint32_t, 4>& words,
                 std::array<float, 4>* values) const;

  const Initial initial_;
  const float below_high_;
  const PhiloxKey key_;
};

}  // namespace penstock::ps::sparse

#endif  // PENSTOCK_PS_SPARSE_INITIAL_VALUE_H_
