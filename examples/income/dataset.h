// Rows of a census, as sparse binary features.

#ifndef PENSTOCK_EXAMPLES_INCOME_DATASET_H_
#define PENSTOCK_EXAMPLES_INCOME_DATASET_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace penstock::income {

struct Example {
  std::vector<uint64_t> features;  // ids of those that are 1; all others are 0
  float label = 0;                 // 1: earns more than 50,000 dollars a year
};

struct Dataset {
  std::vector<Example> train;
  std::vector<Example> test;  // each fourth; no training sees it
};

// Returns the text of adult.test.
absl::string_view EmbeddedCsv();

// Reads the text of adult.test. Features are "column=value", where numbers are
// put into bins, each pair of two columns' values, and one that all have. Their
// ids are hashes. Returns INVALID_ARGUMENT, which names the line, for one
// without 15 columns or with a label that is none.
absl::StatusOr<Dataset> ReadIncome(absl::string_view csv);

}  // namespace penstock::income

#endif  // PENSTOCK_EXAMPLES_INCOME_DATASET_H_
