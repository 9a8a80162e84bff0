// Limits the log lines that one connection can cause, and the log lines that
// all refused peers can cause together.

#ifndef PENSTOCK_TRANSPORT_BASE_LIMITED_LOG_H_
#define PENSTOCK_TRANSPORT_BASE_LIMITED_LOG_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "transport/base/token_bucket.h"

namespace penstock {
namespace base {

// Logs a burst of lines, then one line per minute. One connection, or the
// refused peers of one port, therefore cannot use up the limit of the process.
// Counts the dropped lines, and logs the count with the next line. The
// destructor logs the last dropped line, and the count. Not thread-safe.
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

  // Limits this object's lines. The burst is large enough to show a path that
  // is lost and restored a few times. One line per minute is enough after the
  // burst.
  TokenBucket bucket_{/*burst=*/10, /*pause=*/absl::Minutes(1)};
  uint64_t left_out_ = 0;
  std::string last_left_out_;
  LogLine log_last_left_out_ = nullptr;
};

// Logs a warning about a refused peer. All such lines of the process share one
// LimitedLog, so that refused peers do not use up the limit of other lines.
// Drops the line if another thread is logging such a line. Thread-safe; does
// not block.
void WarnOfStranger(absl::string_view text);

}  // namespace base
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_BASE_LIMITED_LOG_H_
