// A rate limit for the log lines that one connection, or one kind of stranger,
// can cause.

#ifndef PENSTOCK_TRANSPORT_BASE_LIMITED_LOG_H_
#define PENSTOCK_TRANSPORT_BASE_LIMITED_LOG_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "transport/base/token_bucket.h"

namespace penstock {
namespace base {

// Logs a burst of lines, then one a minute. A peer can cause lines, and one
// connection must not use up what the process may log; nor must the crowd that
// a port refuses. Counts the lines that
// it leaves out, and logs the count with the next line. The destructor logs the
// last line that was left out, and the count. Not thread-safe.
class LimitedLog {
 public:
  LimitedLog() = default;
  ~LimitedLog();
  LimitedLog(const LimitedLog&) = delete;
  LimitedLog& operator=(const LimitedLog&) = delete;

  void Info(absl::string_view text);
  void Warning(absl::string_view text);

 private:
  using LogLine = void (*)(absl::string_view text);

  void Log(LogLine log_line, absl::string_view text);

  // Shows a path that comes and goes a few times. If it goes on like that, one
  // line a minute is enough.
  TokenBucket bucket_{/*burst=*/10, /*pause=*/absl::Minutes(1)};
  uint64_t left_out_ = 0;
  std::string last_left_out_;
  LogLine log_last_left_out_ = nullptr;
};

// Logs a warning about somebody who was not let in. All such lines of the
// process share one LimitedLog, so that strangers use up none of its other
// lines. Leaves the line out if another thread is logging one. Thread-safe;
// does not block.
void WarnOfStranger(absl::string_view text);

}  // namespace base
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_BASE_LIMITED_LOG_H_
