// The value that a row has before anybody has pushed a gradient for it.

#ifndef PENSTOCK_PS_SPARSE_INITIAL_VALUE_H_
#define PENSTOCK_PS_SPARSE_INITIAL_VALUE_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "ps/random/philox.h"

namespace penstock::ps::sparse {

// What distribution the elements have.
struct Initial {
  enum class Kind { kZeros, kUniform, kNormal };

  Kind kind = Kind::kZeros;
  float low = 0;  // kUniform: from `low`, below `high`
  float high = 1;
  float mean = 0;  // kNormal
  float stddev = 1;
};

// Makes initial values: a pure function of the seed, the table's name, the id
// and the distribution. So a row begins with the same bits on each server, in
// whatever order rows are made, on any machine with IEEE arithmetic.
//
// Elements 4b to 4b+3 of the row of `id` come from the words of Philox with the
// counter (id's low half, its high half, b, 0) and the key
// KeyOf(seed, table). Of a word, 24 bits make a uniform value, by
// low + (high - low) * u in doubles, and never `high` itself. Two words make
// two normal ones (G. Box, M. Muller, 1958), by a logarithm, sine and cosine of
// our own, since those of the C library differ from one machine to another;
// none is more than 5.9 standard deviations from the mean.
//
// Immutable, thread-safe.
class InitialValue {
 public:
  InitialValue(const Initial& initial, uint64_t seed, absl::string_view table);

  // Writes the first `dim` elements of the row.
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
