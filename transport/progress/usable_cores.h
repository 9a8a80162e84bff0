// Counts the cores that this process may use.

#ifndef PENSTOCK_TRANSPORT_PROGRESS_USABLE_CORES_H_
#define PENSTOCK_TRANSPORT_PROGRESS_USABLE_CORES_H_

#include "absl/strings/string_view.h"

namespace penstock {
namespace progress {

// Returns the number of cores in the affinity mask, or the processor quota if
// that is less. The quota is that of this process's control group (version 2),
// or of a group above it. Rounds down, but to at least 1. Reads files, so keep
// the result.
int UsableCores();

// Returns the quota in the text of a cpu.max file, "<quota> <period>", in
// cores. Returns 0 if there is no quota, or if the text has another form.
double ParseCpuMax(absl::string_view text);

}  // namespace progress
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PROGRESS_USABLE_CORES_H_
