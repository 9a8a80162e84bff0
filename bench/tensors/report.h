// The results of a model, and their table.

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

// The median times of a round's steps, in microseconds since the beginning of
// the client's step.
struct Step {
  double handed_us = 0;  // until the handler has the tensors
  double read_us = 0;    // until the handler has read every byte
  double call_us = 0;    // until the client has the answer
  double page_faults = 0;
};

// Convert a step to a line without line feeds, and back.
std::string ToLine(const Step& step);
absl::StatusOr<Step> FromLine(absl::string_view line);

// A contender, and the results of its rounds.
struct Row {
  Contender contender;
  std::vector<Step> rounds;
  std::string unavailable;  // the reason; empty if measured
};

// Prints a model's table: medians, minima and maxima of the rounds, and the
// speed-up over the first row.
void PrintTable(const Model& model, const std::vector<Row>& rows,
                std::ostream& out);

}  // namespace penstock::bench

#endif  // PENSTOCK_BENCH_TENSORS_REPORT_H_
