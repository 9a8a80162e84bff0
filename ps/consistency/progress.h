// The progress of a server, compared with cuts.

#ifndef PENSTOCK_PS_CONSISTENCY_PROGRESS_H_
#define PENSTOCK_PS_CONSISTENCY_PROGRESS_H_

#include "absl/types/optional.h"
#include "ps/consistency/coordinator.h"
#include "ps/consistency/cut.h"
#include "ps/consistency/membership.h"

namespace penstock::ps {

// Returns the oldest and the newest version of the synchronous policies;
// nullopt: there are none.
absl::optional<Membership::Steps> StepsUnderWay(const Coordinator& server);
// Returns the pushes that the server has begun to apply.
HeldSteps BegunBy(const Coordinator& server);
// Returns true if all accepted pushes are applied, except those of incomplete
// synchronous steps. Two servers that got the same events have then begun the
// same pushes.
bool IsQuiet(const Coordinator& server);
// Returns true if all pushes inside the cut are applied, and the server expects
// no more of them.
bool IsAt(const CutPoint& cut, const Coordinator& server);
// Returns true if the gate stops the pushes outside a cut, and the server is at
// that cut.
bool IsAtCut(const Coordinator& server);
// Returns true if the server has begun to apply a push outside the cut.
bool IsPast(const CutPoint& cut, const Coordinator& server);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CONSISTENCY_PROGRESS_H_
