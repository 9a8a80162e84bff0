#include "bench/tensors/report.h"

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "bench/rpc/report/statistics.h"

namespace penstock::bench {
namespace {

std::vector<double> Of(const Row& row, double Step::*figure) {
  std::vector<double> figures;
  for (const Step& step : row.rounds) figures.push_back(step.*figure);
  return figures;
}

// Returns the median, minimum and maximum as text: "1234 (1200-1300)".
std::string WithSpread(const Row& row, double Step::*figure) {
  const std::vector<double> figures = Of(row, figure);
  const Spread spread = SpreadOf(figures);
  return absl::StrFormat("%.0f (%.0f-%.0f)", Median(figures), spread.min,
                         spread.max);
}

// Returns the speed-up of `row` over `first`, or an empty string if either was
// not measured.
std::string Faster(const Row& first, const Row& row, double Step::*figure) {
  const double ours = Median(Of(row, figure));
  const double its = Median(Of(first, figure));
  if (ours == 0 || its == 0) return "";
  return absl::StrFormat("%.1f", its / ours);
}

}  // namespace

std::string ToLine(const Step& step) {
  return absl::StrCat(step.handed_us, " ", step.read_us, " ", step.call_us, " ",
                      step.page_faults);
}

absl::StatusOr<Step> FromLine(absl::string_view line) {
  Step step;
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
  if (words.size() != 4 || !absl::SimpleAtod(words[0], &step.handed_us) ||
      !absl::SimpleAtod(words[1], &step.read_us) ||
      !absl::SimpleAtod(words[2], &step.call_us) ||
      !absl::SimpleAtod(words[3], &step.page_faults)) {
    return absl::InternalError(absl::StrCat("not a result: ", line));
  }
  return step;
}

void PrintTable(const Model& model, const std::vector<Row>& rows,
                std::ostream& out) {
  out << absl::StrFormat(
      "%s: %d tensors, %.2f MB\n%-14s%24s%24s%24s%8s%8s%8s\n", model.name,
      model.variables.size(), model.byte_size() / 1e6, "", "handed over, us",
      "every byte read, us", "answered, us", "faults", "handed", "read");
  for (const Row& row : rows) {
    out << absl::StrFormat("%-14s", row.contender.name);
    if (!row.unavailable.empty()) {
      out << " unavailable: " << row.unavailable << "\n";
      continue;
    }
    out << absl::StrFormat(
        "%24s%24s%24s%8.0f%8s%8s\n", WithSpread(row, &Step::handed_us),
        WithSpread(row, &Step::read_us), WithSpread(row, &Step::call_us),
        Median(Of(row, &Step::page_faults)),
        Faster(rows.front(), row, &Step::handed_us),
        Faster(rows.front(), row, &Step::read_us));
  }
  out << std::endl;
}

}  // namespace penstock::bench
