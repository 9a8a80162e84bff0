// What `penstock ping` prints: a row for each round, and the summary.

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
  std::string reason;  // why no better path is used
  std::string calls;   // what was called
  std::string error;   // of the last call that failed; empty: none has
  std::vector<PingSeries> series;
};

// Returns what carries the connection, why nothing better does, and what is
// called: the lines before the first round.
std::string IntroductionText(const PingSummary& summary, const Output& out);

// Shows rounds: as columns, one for each size, where the terminal is wide
// enough, and else one line for each call. Not thread-safe.
class RoundPrinter {
 public:
  RoundPrinter(Output* out, std::vector<size_t> sizes);

  // Prints the names of the columns, if there are any, after an empty line.
  void Header();
  // Prints a row: `number`, which is the last round's, and the median of each
  // size. Empties `series`.
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
