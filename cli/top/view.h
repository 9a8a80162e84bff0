// Formats the output of `penstock top` from two samples of a process.

#ifndef PENSTOCK_CLI_TOP_VIEW_H_
#define PENSTOCK_CLI_TOP_VIEW_H_

#include <string>

#include "cli/text/output.h"
#include "cli/top/sample.h"

namespace penstock::cli {

// Returns text with the rates between the samples; `after` is the later one. A
// counter that has decreased, because the process was restarted, has the rate
// 0.
std::string ViewText(const Sample& before, const Sample& after,
                     const Output& out);
// Returns one JSON object on one line. `now` is the time of day.
std::string ViewJson(const Sample& before, const Sample& after, absl::Time now);

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_TOP_VIEW_H_
