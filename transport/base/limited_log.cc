#include "transport/base/limited_log.h"

#include "absl/strings/str_cat.h"
#include "transport/base/log.h"
#include "transport/base/steady_time.h"

namespace penstock {
namespace base {

void LimitedLog::Info(absl::string_view text) {
  if (!bucket_.Take(SteadyNow())) {
    ++left_out_;
    CountLogLineLeftOut();
    last_left_out_ = std::string(text.substr(0, kMaxLogLineBytes));
    return;
  }
  if (left_out_ == 0) return LogInfo(text);
  LogInfo(absl::StrCat("(", left_out_, " lines before this left out) ", text));
  left_out_ = 0;
}

LimitedLog::~LimitedLog() {
  if (left_out_ == 0) return;
  LogInfo(absl::StrCat("(", left_out_ - 1, " lines before this left out) ",
                       last_left_out_));
}

}  // namespace base
}  // namespace penstock
