#include "transport/base/limited_log.h"

#include "absl/strings/str_cat.h"
#include "transport/base/log.h"
#include "transport/base/mutex.h"
#include "transport/base/steady_time.h"

namespace penstock {
namespace base {

void LimitedLog::Info(absl::string_view text) { Log(&LogInfo, text); }

void LimitedLog::Warning(absl::string_view text) { Log(&LogWarning, text); }

void LimitedLog::Log(LogLine log_line, absl::string_view text) {
  if (!bucket_.Take(SteadyNow())) {
    ++left_out_;
    CountLogLineLeftOut();
    last_left_out_ = std::string(text.substr(0, kMaxLogLineBytes));
    log_last_left_out_ = log_line;
    return;
  }
  if (left_out_ == 0) return log_line(text);
  log_line(absl::StrCat("(", left_out_, " lines before this left out) ", text));
  left_out_ = 0;
}

LimitedLog::~LimitedLog() {
  if (left_out_ == 0) return;
  log_last_left_out_(absl::StrCat(
      "(", left_out_ - 1, " lines before this left out) ", last_left_out_));
}

void WarnOfStranger(absl::string_view text) {
  // Never destroyed, because threads that outlive main() may log.
  static auto* const mu = new Mutex;
  static auto* const log = new LimitedLog;
  // Only tries to lock, because in the child of a fork the lock may stay held
  // for ever.
  if (!mu->TryLock()) return CountLogLineLeftOut();
  log->Warning(text);
  mu->Unlock();
}

}  // namespace base
}  // namespace penstock
