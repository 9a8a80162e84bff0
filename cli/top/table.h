// A table that omits its least important columns if there is no room.

#ifndef PENSTOCK_CLI_TOP_TABLE_H_
#define PENSTOCK_CLI_TOP_TABLE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace penstock::cli {

struct Column {
  std::string name;
  int width = 0;  // negative: left-aligned cells
  // The order in which columns are omitted: the highest rank first. Columns
  // with rank 0 are never omitted.
  int rank = 0;
};

class Table {
 public:
  // Makes a table that fits into `width` columns of a terminal if possible.
  Table(std::vector<Column> columns, size_t width);

  std::string Header() const;
  // Formats a row. `cells` has one cell for each column, even if omitted.
  std::string Row(absl::Span<const std::string> cells) const;
  // Returns "no room for: RPCs, eager to", as lines, or an empty string if no
  // column is omitted.
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
