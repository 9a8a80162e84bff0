// The log of one connection, whose peer has a say in how much it is.

#ifndef PENSTOCK_TRANSPORT_BASE_LIMITED_LOG_H_
#define PENSTOCK_TRANSPORT_BASE_LIMITED_LOG_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "transport/base/token_bucket.h"

namespace penstock {
namespace base {

// Logs a burst of lines, then one now and then, so that one connection does
// not use up what the process may log. Of what is left out, the last line and
// the count come with the next that may be written, or at the end. Not
// thread-safe.
class LimitedLog {
 public:
  LimitedLog() = default;
  ~LimitedLog();
  LimitedLog(const LimitedLog&) = delete;
  LimitedLog& operator=(const LimitedLog&) = delete;

  void Info(absl::string_view text);

 private:
  // A path that comes and goes is worth a few lines; one that does so for ever
  // is one line a minute.
  TokenBucket bucket_{/*burst=*/10, /*pause=*/absl::Minutes(1)};
  uint64_t left_out_ = 0;
  std::string last_left_out_;
};

}  // namespace base
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_BASE_LIMITED_LOG_H_
