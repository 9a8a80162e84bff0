// Reads handwritten digits, which are embedded in the program. data/README.md
// names the source.

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

// Images as rows of pixels between 0 and 1, and the digit that each image
// shows.
struct Images {
  Matrix pixels;            // [n, kPixels]
  std::vector<int> labels;  // [n], 0 to 9
};

struct Dataset {
  Images train;       // three fifths
  Images validation;  // one fifth, for choosing the learning rate
  Images test;        // one fifth, never used for training or choosing
};

// Returns the text of optdigits.csv.
absl::string_view EmbeddedCsv();

// Parses the text, and splits the digits into training, validation and test.
// The split is always the same. `seed` determines the order of the training
// digits, identically on all machines. Returns INVALID_ARGUMENT, with the line
// number, for a line that is not 64 pixels and a digit.
absl::StatusOr<Dataset> LoadDigits(absl::string_view csv, uint32_t seed);

// Returns the images of worker `rank` in a step's mini-batch. All workers
// together iterate over the training set in its order, repeatedly.
Images BatchOf(const Images& train, uint64_t step, uint32_t rank,
               uint32_t workers, size_t batch);

}  // namespace penstock::digits

#endif  // PENSTOCK_EXAMPLES_DIGITS_DATASET_H_
