// What `penstock top` shows: the difference of two looks at a process.

#ifndef PENSTOCK_CLI_TOP_VIEW_H_
#define PENSTOCK_CLI_TOP_VIEW_H_

#include <string>

#include "cli/text/output.h"
#include "cli/top/sample.h"

namespace penstock::cli {

// Rates are those between the two samples, of which `after` is the later one;
// what has become less, as in a process that was started anew, counts as 0.
std::string ViewText(const Sample& before, const Sample& after,
                     const Output& out);
// One JSON object, in one line. `now` is the time of day.
std::string ViewJson(const Sample& before, const Sample& after, absl::Time now);

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_TOP_VIEW_H_
