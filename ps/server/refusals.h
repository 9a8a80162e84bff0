// The errors by which a parameter server refuses calls.

#ifndef PENSTOCK_PS_SERVER_REFUSALS_H_
#define PENSTOCK_PS_SERVER_REFUSALS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "ps/consistency/coordinator.h"

namespace penstock::ps {

absl::Status Draining();
// Refuses a call that would wait: `calls` others wait already.
absl::Status TooManyWait(size_t calls);
// A request of `run` to a server that has no model, or one of `ours`.
absl::Status HasNoModel(uint64_t run);
absl::Status OtherRun(uint64_t run, uint64_t ours);

// Returns what `verdict` on a call ("push for step 3") means for its caller, a
// worker or a reader: OK if it was accepted, is repeated or late.
absl::Status Refusal(Coordinator::Verdict verdict,
                     const absl::optional<WorkerId>& worker,
                     absl::string_view call);

// Passes lines on in printable form: they may have names that a peer has
// chosen. Writes them to Penstock's log if `log` is empty.
void LogLines(const std::function<void(const std::string&)>& log,
              const std::vector<std::string>& lines);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVER_REFUSALS_H_
