#include "cli/text/output.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "transport/base/status_util.h"

namespace penstock::cli {
namespace {

// The least width of a text, in columns. Narrower text is unreadable.
constexpr size_t kMinColumns = 40;
constexpr size_t kMaxColumns = 100;

const char* CodeOf(Style style) {
  switch (style) {
    case Style::kPlain:
      return "";
    case Style::kBold:
      return "\x1b[1m";
    case Style::kDim:
      return "\x1b[2m";
    case Style::kGood:
      return "\x1b[32m";
    case Style::kWarning:
      return "\x1b[33m";
    case Style::kBad:
      return "\x1b[1;31m";
  }
  return "";
}

bool IsSet(const char* variable, absl::string_view value) {
  const char* const text = secure_getenv(variable);
  return text != nullptr && (value.empty() ? *text != '\0' : text == value);
}

}  // namespace

Display DisplayOf(int fd) {
  Display display;
  if (isatty(fd) == 0) return display;
  display.is_terminal = true;
  display.has_colours = !IsSet("NO_COLOR", "") && !IsSet("TERM", "dumb");
  winsize size = {};
  if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    display.columns = std::clamp<size_t>(size.ws_col, kMinColumns, kMaxColumns);
    display.width = size.ws_col;
  }
  return display;
}

void Output::Write(absl::string_view text) {
  while (status_.ok() && !text.empty()) {
    const ssize_t count = write(fd_, text.data(), text.size());
    if (count >= 0) {
      text.remove_prefix(count);
    } else if (errno == EAGAIN) {
      // Waits for room. Needed if another process that shares this descriptor
      // has set O_NONBLOCK.
      pollfd room = {fd_, POLLOUT, 0};
      (void)poll(&room, 1, /*timeout=*/-1);
    } else if (errno == EPIPE) {
      status_ = absl::CancelledError("the reader has closed the pipe");
    } else if (errno != EINTR) {
      status_ = base::ErrnoStatus(errno, "write to standard output");
    }
  }
}

std::string Output::Styled(Style style, absl::string_view text) const {
  if (!display_.has_colours || style == Style::kPlain) return std::string(text);
  return absl::StrCat(CodeOf(style), text, "\x1b[0m");
}

std::string Wrapped(absl::string_view text, size_t indent, size_t columns) {
  std::string lines;
  size_t column = indent;
  bool is_first = true;
  for (absl::string_view word :
       absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty())) {
    if (!is_first && column + 1 + word.size() > columns) {
      lines += '\n';
      lines.append(indent, ' ');
      column = indent;
    } else if (!is_first) {
      lines += ' ';
      ++column;
    }
    lines.append(word.data(), word.size());
    column += word.size();
    is_first = false;
  }
  return lines;
}

std::string Fitted(absl::string_view text, const Output& out) {
  constexpr size_t kIndent = 4;
  if (!out.is_terminal()) return std::string(text);
  std::vector<std::string> lines;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (line.size() <= out.columns()) {
      lines.emplace_back(line);
      continue;
    }
    // Keeps the indentation of the first line.
    const size_t begin = std::min(line.find_first_not_of(' '), line.size());
    lines.push_back(absl::StrCat(
        line.substr(0, begin),
        Wrapped(line.substr(begin), begin + kIndent, out.columns())));
  }
  return absl::StrJoin(lines, "\n");
}

}  // namespace penstock::cli
