// Shows the progress of long work to a user at a terminal.

#ifndef PENSTOCK_CLI_PROGRESS_LINE_H_
#define PENSTOCK_CLI_PROGRESS_LINE_H_

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "cli/text/output.h"

namespace penstock::cli {

// A progress bar on a terminal: one line of standard error that is overwritten,
// and erased at the end. Short work shows no bar. Thread-safe.
class ProgressLine {
 public:
  ProgressLine();
  // Erases the bar.
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Draws the bar, at most five times a second. Both numbers are bytes.
  void Show(uint64_t done, uint64_t total);

  // Writes a permanent line of text above the bar. `line` has no newline.
  void Say(absl::string_view line);

 private:
  void WipeLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const bool is_shown_;
  absl::Mutex mu_;
  Output out_ ABSL_GUARDED_BY(mu_);
  bool is_drawn_ ABSL_GUARDED_BY(mu_) = false;
  absl::Time next_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_PROGRESS_LINE_H_
