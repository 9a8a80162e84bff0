// Formats the results of a workload as a table and as JSON.

#ifndef PENSTOCK_BENCH_PS_TRAINING_REPORT_H_
#define PENSTOCK_BENCH_PS_TRAINING_REPORT_H_

#include <ostream>
#include <string>
#include <vector>

#include "bench/ps/training/figures.h"
#include "nlohmann/json.hpp"

namespace penstock::bench {

inline constexpr char kPlain[] = "plain";

struct Row {
  std::string contender;
  std::vector<Figures> rounds;
};

// Prints a table of contenders. The first row is the base of comparison; steps
// are also compared with the row kPlain. Each figure is the median of the
// rounds, followed by the quartiles. A ratio is the median of the rounds'
// ratios. If `ids` is not 0, each step moves `ids` ids, and the table also
// shows rates.
void PrintTable(const std::string& workload, size_t ids,
                const std::vector<Row>& rows, std::ostream& out);

// Returns the figures of all rounds, by contender and figure, in seconds.
nlohmann::json ToJson(const std::vector<Row>& rows);

}  // namespace penstock::bench

#endif  // PENSTOCK_BENCH_PS_TRAINING_REPORT_H_
