// Recognises lines that were logged a moment ago.

#ifndef PENSTOCK_TRANSPORT_BASE_RECENT_LINES_H_
#define PENSTOCK_TRANSPORT_BASE_RECENT_LINES_H_

#include <iterator>
#include <map>
#include <string>

#include "absl/time/time.h"

namespace penstock::base {

// The lines that a loop has logged lately. A state that lasts is thus logged
// once in a while, even if the loop finds several such states in turn.
//
// Pure: the caller passes the time. Not thread-safe.
class RecentLines {
 public:
  // Lets the same line come again after `interval`.
  explicit RecentLines(absl::Duration interval) : interval_(interval) {}

  // Returns true if the caller should log `line`, and remembers the line.
  bool IsNews(const std::string& line, absl::Time now) {
    for (auto at = logged_.begin(); at != logged_.end();) {
      at = now - at->second >= interval_ ? logged_.erase(at) : std::next(at);
    }
    return logged_.emplace(line, now).second;
  }

 private:
  const absl::Duration interval_;
  std::map<std::string, absl::Time> logged_;
};

}  // namespace penstock::base

#endif  // PENSTOCK_TRANSPORT_BASE_RECENT_LINES_H_
