// A table whose least important columns are left out where there is no room.

#ifndef PENSTOCK_CLI_TOP_TABLE_H_
#define PENSTOCK_CLI_TOP_TABLE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace penstock::cli {

struct Column {
  std::string name;
  int width = 0;  // below 0: cells begin at the left
  // Those with the highest are left out first; with 0, never.
  int rank = 0;
};

class Table {
 public:
  // Fits it into `width` columns of a terminal, if that is possible.
  Table(std::vector<Column> columns, size_t width);

  std::string Header() const;
  // One cell for each column, left out or not.
  std::string Row(absl::Span<const std::string> cells) const;
  // "no room for: RPCs, eager to", as lines; empty if nothing is left out.
  std::string LeftOut() const;

 private:
  bool IsShown(const Column& column) const { return column.rank <= max_rank_; }
  size_t Width() const;

  const std::vector<Column> columns_;
  const size_t width_;
  int max_rank_ = 0;
};

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_TOP_TABLE_H_
