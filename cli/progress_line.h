// How far a long piece of work is, for who waits at a terminal.

#ifndef PENSTOCK_CLI_PROGRESS_LINE_H_
#define PENSTOCK_CLI_PROGRESS_LINE_H_

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "cli/text/output.h"

namespace penstock::cli {

// A bar on a terminal and nowhere else: one line of standard error that is
// written over, and wiped in the end. What is done soon is not shown.
// Thread-safe.
class ProgressLine {
 public:
  ProgressLine();
  // Wipes it.
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Draws it, but not more than five times a second. Bytes.
  void Show(uint64_t done, uint64_t total);

  // Writes a line of text, without its end, that stays: above the bar.
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
