#include "bench/ps/training/figures.h"

#include <iterator>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace penstock::bench {

std::string ToLine(const Figures& figures) {
  std::string line;
  for (const FigureName& each : kFigures) {
    absl::StrAppend(&line, line.empty() ? "" : " ", figures.*each.figure);
  }
  return line;
}

absl::StatusOr<Figures> FiguresFromLine(absl::string_view line) {
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
  Figures figures;
  bool is_right = words.size() == std::size(kFigures);
  for (size_t i = 0; is_right && i < words.size(); ++i) {
    is_right = absl::SimpleAtod(words[i], &(figures.*kFigures[i].figure));
  }
  if (is_right) return figures;
  return absl::InternalError(absl::StrCat("a child process said: ", line));
}

}  // namespace penstock::bench
