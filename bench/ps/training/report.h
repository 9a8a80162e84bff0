// A workload's table, and the same as JSON.

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

// The first row is what others are compared with; a row named kPlain, what
// their steps are compared with. Each figure is the median of the rounds, with
// the quartiles behind it; so are ratios, each of which is of one round. If
// `ids` is not 0, each step moves so many ids, and rates are shown as well.
void PrintTable(const std::string& workload, size_t ids,
                const std::vector<Row>& rows, std::ostream& out);

// All rounds' figures, by contender and by figure, in seconds.
nlohmann::json ToJson(const std::vector<Row>& rows);

}  // namespace penstock::bench

#endif  // PENSTOCK_BENCH_PS_TRAINING_REPORT_H_
