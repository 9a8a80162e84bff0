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

// One row an image, pixels from 0 to 1, and its digit.
struct Images {
  Matrix pixels;            // [n, kPixels]
  std::vector<int> labels;  // [n], 0 to 9
};

struct Dataset {
  Images train;       // three fifths
  Images validation;  // a fifth: for choosing what training does not learn
  Images test;        // a fifth, held out: neither trained nor chosen on
};

// The text of optdigits.csv.
absl::string_view EmbeddedCsv();

// The split is always the same; `seed` gives the training digits their order,
// the same one everywhere.
// INVALID_ARGUMENT names the line that is not 64 pixels and a digit.
absl::StatusOr<Dataset> LoadDigits(absl::string_view csv, uint32_t seed);

// Worker `rank`'s part of the mini-batch of one step: all workers together walk
// through the training set in one shuffled order, over and over.
Images BatchOf(const Images& train, uint64_t step, uint32_t rank,
               uint32_t workers, size_t batch);

}  // namespace penstock::digits

#endif  // PENSTOCK_EXAMPLES_DIGITS_DATASET_H_
