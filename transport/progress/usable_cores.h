// How many processors this process may keep busy.

#ifndef PENSTOCK_TRANSPORT_PROGRESS_USABLE_CORES_H_
#define PENSTOCK_TRANSPORT_PROGRESS_USABLE_CORES_H_

#include "absl/strings/string_view.h"

namespace penstock {
namespace progress {

// The lesser of the affinity mask and the processor quota of this process's
// control group (version 2) and of those above it, rounded down; at least 1.
// Reads files: ask once and keep the answer.
int UsableCores();

// The quota in cpu.max, "<quota> <period>", in processors. 0: there is none, or
// the text is something else.
double ParseCpuMax(absl::string_view text);

}  // namespace progress
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PROGRESS_USABLE_CORES_H_
