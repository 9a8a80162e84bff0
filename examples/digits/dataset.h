// Handwritten digits, built into the program; data/README.md has the source.

#ifndef PENSTOCK_EXAMPLES_DIGITS_DATASET_H_
#define PENSTOCK_EXAMPLES_DIGITS_DATASET_H_

#include <cstddef>
#include <cstdint>
#include <eigen3/Eigen/Dense>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace penstock::digits {

inline constexpr int kPixels = 64;
inline constexpr int kClasses = 10;

using Matrix =
    Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// Images, a row each, with pixels from 0 to 1, and their digits.
struct Images {
  Matrix pixels;            // [n, kPixels]
  std::vector<int> labels;  // [n], 0 to 9
};

struct Dataset {
  Images train;       // three fifths
  Images validation;  // a fifth: to choose the learning rate on
  Images test;        // a fifth, held out: nothing is trained or chosen on it
};

// Returns the text of optdigits.csv.
absl::string_view EmbeddedCsv();

// Parses the text and splits the digits. The split is always the same. `seed`
// gives the order of the training digits; the same seed gives the same order
// everywhere. Returns INVALID_ARGUMENT, which names the line, for one that is
// not 64 pixels and a digit.
absl::StatusOr<Dataset> LoadDigits(absl::string_view csv, uint32_t seed);

// Returns worker `rank`'s part of a step's mini-batch. All workers together
// walk through the training set in its order, again and again.
Images BatchOf(const Images& train, uint64_t step, uint32_t rank,
               uint32_t workers, size_t batch);

}  // namespace penstock::digits

#endif  // PENSTOCK_EXAMPLES_DIGITS_DATASET_H_
