// The output of a command.

#ifndef PENSTOCK_CLI_TEXT_OUTPUT_H_
#define PENSTOCK_CLI_TEXT_OUTPUT_H_

#include <cstddef>
#include <limits>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace penstock::cli {

// The styles of text. Colour only repeats information of the text.
enum class Style { kPlain, kBold, kDim, kGood, kWarning, kBad };

// The capabilities of the terminal or file behind a descriptor.
struct Display {
  bool has_colours = false;
  size_t columns = 80;                                // for text
  size_t width = std::numeric_limits<size_t>::max();  // for tables
  bool is_terminal = false;
};

// Returns the capabilities of `fd`. If `fd` is no terminal: 80 columns of text,
// tables of any width, and no colours. A terminal has no colours if NO_COLOR is
// set or TERM is dumb.
Display DisplayOf(int fd);

// Writes to a descriptor, and records the first failure. SIGPIPE must be
// ignored. Not thread-safe.
class Output {
 public:
  Output(int fd, const Display& display) : fd_(fd), display_(display) {}
  explicit Output(int fd) : Output(fd, DisplayOf(fd)) {}

  bool is_terminal() const { return display_.is_terminal; }
  size_t columns() const { return display_.columns; }
  size_t width() const { return display_.width; }
  // Writes immediately. Does nothing after a failure.
  void Write(absl::string_view text);
  // Returns `text` in the style if the output has colours.
  std::string Styled(Style style, absl::string_view text) const;
  // Returns the first failure. CANCELLED means that the reader has closed the
  // pipe, which needs no message.
  const absl::Status& status() const { return status_; }

 private:
  int fd_;
  Display display_;
  absl::Status status_;
};

// Breaks `text` into lines of at most `columns`. Lines after the first begin
// with `indent` blanks; the first is assumed to begin in column `indent`. Does
// not break words that are too long. Returns no final newline.
std::string Wrapped(absl::string_view text, size_t indent, size_t columns);

// Wraps the lines of `text` to the width of `out` if `out` is a terminal.
// Wrapped() collapses blanks in lines that are too long.
std::string Fitted(absl::string_view text, const Output& out);

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_TEXT_OUTPUT_H_
