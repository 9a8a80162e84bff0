// The figures of a model, and their table.

#ifndef PENSTOCK_BENCH_TENSORS_REPORT_H_
#define PENSTOCK_BENCH_TENSORS_REPORT_H_

#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "bench/tensors/contender.h"
#include "bench/tensors/models.h"

namespace penstock::bench {

// A step, as the medians of one round. Times are from the begin of the
// client's step, in microseconds.
struct Step {
  double handed_us = 0;  // until the handler has the tensors
  double read_us = 0;    // until it has read every byte
  double call_us = 0;    // until the client has the answer
  double page_faults = 0;
};

// Convert a step to a line without line feeds, and back.
std::string ToLine(const Step& step);
absl::StatusOr<Step> FromLine(absl::string_view line);

// What the rounds of a contender gave.
struct Row {
  Contender contender;
  std::vector<Step> rounds;
  std::string unavailable;  // why; empty if it was measured
};

// Prints a model's table: medians of the rounds, the smallest and the largest,
// and how many times faster than the first row each is.
void PrintTable(const Model& model, const std::vector<Row>& rows,
                std::ostream& out);

}  // namespace penstock::bench

#endif  // PENSTOCK_BENCH_TENSORS_REPORT_H_
