// The errors with which a parameter server refuses calls.

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
// Returns the error for a call that cannot wait, because `calls` other calls
// already wait.
absl::Status TooManyWait(size_t calls);
// Return the error for a request of another run: the server has no model, or
// its run is `ours`.
absl::Status HasNoModel(uint64_t run);
absl::Status OtherRun(uint64_t run, uint64_t ours);

// Returns the status for a call with this verdict. `call` names the call for
// messages, as in "push for step 3". `worker` is nullopt for a reader. Returns
// OK for a call that was accepted, is a duplicate or is late.
absl::Status Refusal(Coordinator::Verdict verdict,
                     const absl::optional<WorkerId>& worker,
                     absl::string_view call);

// Passes lines to `log`, or to Penstock's log if `log` is empty. Makes the
// lines printable, because a line may contain a name that a peer has chosen.
void LogLines(const std::function<void(const std::string&)>& log,
              const std::vector<std::string>& lines);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVER_REFUSALS_H_
