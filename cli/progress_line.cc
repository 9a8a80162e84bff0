#include "cli/progress_line.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/text/units.h"
#include "transport/base/steady_time.h"

namespace penstock::cli {
namespace {

constexpr absl::Duration kInterval = absl::Milliseconds(200);
constexpr size_t kColumns = 40;

}  // namespace

ProgressLine::ProgressLine()
    : is_shown_(isatty(STDERR_FILENO) == 1),
      out_(STDERR_FILENO, Display()),
      next_(base::SteadyNow() + kInterval) {}

ProgressLine::~ProgressLine() {
  absl::MutexLock lock(&mu_);
  WipeLocked();
}

void ProgressLine::Show(uint64_t done, uint64_t total) {
  absl::MutexLock lock(&mu_);
  const absl::Time now = base::SteadyNow();
  if (!is_shown_ || now < next_ || total == 0) return;
  next_ = now + kInterval;
  is_drawn_ = true;
  const double share =
      std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  const auto filled = static_cast<size_t>(share * kColumns);
  out_.Write(absl::StrFormat(
      "\r[%s%s] %3.0f%% of %s\x1b[K", std::string(filled, '#'),
      std::string(kColumns - filled, ' '), 100 * share, BytesText(total)));
}

void ProgressLine::Say(absl::string_view line) {
  if (!is_shown_) return;
  absl::MutexLock lock(&mu_);
  WipeLocked();
  out_.Write(absl::StrCat(line, "\n"));
}

void ProgressLine::WipeLocked() {
  if (is_drawn_) out_.Write("\r\x1b[K");
  is_drawn_ = false;
}

}  // namespace penstock::cli
