// Reads rows of a census as sparse binary features.

#ifndef PENSTOCK_EXAMPLES_INCOME_DATASET_H_
#define PENSTOCK_EXAMPLES_INCOME_DATASET_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace penstock::income {

struct Example {
  std::vector<uint64_t> features;  // ids of the features that are 1
  float label = 0;                 // 1: earns more than 50,000 dollars a year
};

struct Dataset {
  std::vector<Example> train;
  std::vector<Example> test;  // every fourth row, never used for training
};

// Returns the text of adult.test.
absl::string_view EmbeddedCsv();

// Parses the text of adult.test. Features are "column=value" with binned
// numbers, each pair of two columns' values, and one feature of all rows.
// Feature ids are hashes. Returns INVALID_ARGUMENT, with the line number, for a
// line without 15 columns or with an invalid label.
absl::StatusOr<Dataset> ReadIncome(absl::string_view csv);

}  // namespace penstock::income

#endif  // PENSTOCK_EXAMPLES_INCOME_DATASET_H_
