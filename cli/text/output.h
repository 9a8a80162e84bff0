// Where a command writes its answer.

#ifndef PENSTOCK_CLI_TEXT_OUTPUT_H_
#define PENSTOCK_CLI_TEXT_OUTPUT_H_

#include <cstddef>
#include <limits>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace penstock::cli {

// What colour says: nothing that the text does not say as well.
enum class Style { kPlain, kBold, kDim, kGood, kWarning, kBad };

// What a descriptor's other end can show.
struct Display {
  bool has_colours = false;
  size_t columns = 80;                                // for text
  size_t width = std::numeric_limits<size_t>::max();  // for tables
  bool is_terminal = false;
};

// Returns what `fd` can show: 80 columns of text, tables of any width and no
// colours if it is no terminal. A terminal has no colours with NO_COLOR in the
// environment or TERM=dumb.
Display DisplayOf(int fd);

// Writes to a descriptor, and remembers whether that worked. SIGPIPE must be
// ignored. Not thread-safe.
class Output {
 public:
  Output(int fd, const Display& display) : fd_(fd), display_(display) {}
  explicit Output(int fd) : Output(fd, DisplayOf(fd)) {}

  bool is_terminal() const { return display_.is_terminal; }
  size_t columns() const { return display_.columns; }
  size_t width() const { return display_.width; }
  // Writes at once. Does nothing after a failure.
  void Write(absl::string_view text);
  // Returns `text` in that style, if there are colours.
  std::string Styled(Style style, absl::string_view text) const;
  // The first failure. CANCELLED: the reader has closed the pipe, which is its
  // right and needs no message.
  const absl::Status& status() const { return status_; }

 private:
  int fd_;
  Display display_;
  absl::Status status_;
};

// Breaks `text` into lines of at most `columns`, each of which but the first
// begins with `indent` blanks; the first begins in column `indent`, too. Words
// that are longer stay whole. No newline at the end.
std::string Wrapped(absl::string_view text, size_t indent, size_t columns);

// Returns `text` with lines that fit the width of `out`, if that is a terminal.
// Breaks longer lines by Wrapped(), which makes their blanks single.
std::string Fitted(absl::string_view text, const Output& out);

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_TEXT_OUTPUT_H_
