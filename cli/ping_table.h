// Formats the output of `penstock ping`: a row for each round, and the summary.

#ifndef PENSTOCK_CLI_PING_TABLE_H_
#define PENSTOCK_CLI_PING_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/histogram.h"
#include "cli/text/output.h"

namespace penstock::cli {

// The calls of one size.
struct PingSeries {
  size_t bytes = 0;
  Histogram times;
  Histogram recent;  // since the last row
  uint64_t failed = 0;
};

struct PingSummary {
  std::string target;
  std::string path;    // "shm"
  std::string detail;  // "ring 256 KiB"
  std::string reason;  // the reason for not using a better path
  std::string calls;   // the called method
  std::string error;   // error of the last failed call; empty if none failed
  std::vector<PingSeries> series;
};

// Returns the lines before the first round: the connection's path, the reason
// for not using a better one, and the called method.
std::string IntroductionText(const PingSummary& summary, const Output& out);

// Prints rounds. A wide terminal shows one column for each size, and a narrow
// one shows one line for each call. Not thread-safe.
class RoundPrinter {
 public:
  RoundPrinter(Output* out, std::vector<size_t> sizes);

  // Prints an empty line and the column names, if there are columns.
  void Header();
  // Prints a row with the median of each size; `number` is the number of the
  // last round. Clears `recent` of each series.
  void Row(uint64_t number, std::vector<PingSeries>* series);

 private:
  bool HasColumns() const;

  Output* const out_;
  const std::vector<size_t> sizes_;
};

std::string SummaryText(const PingSummary& summary, const Output& out);
// Returns one JSON object, in one line.
std::string SummaryJson(const PingSummary& summary);

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_PING_TABLE_H_
