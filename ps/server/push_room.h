// Decides if there is room for the gradients of a push.

#ifndef PENSTOCK_PS_SERVER_PUSH_ROOM_H_
#define PENSTOCK_PS_SERVER_PUSH_ROOM_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "ps/consistency/coordinator.h"
#include "ps/consistency/cut.h"
#include "ps/server/held_gradients.h"

namespace penstock::ps {

// The limit on gradients that are not applied yet. A push that does not fit is
// sent again later; each applied push makes room.
//
// A synchronous step is applied only after its workers have pushed. If their
// gradients do not fit together, the last workers would push again forever.
// PushRoom remembers the workers whose pushes did not fit next to the other
// pushes of the step. Once the step cannot end without these workers, PushRoom
// ends the training.
//
// Pure: no clock, no thread, no I/O.
class PushRoom {
 public:
  explicit PushRoom(size_t max_bytes) : max_bytes_(max_bytes) {}

  // Checks whether a push may be accepted. `pending_bytes` is the size of the
  // pushes that the coordinator holds. Returns OK if the worker is not a
  // member: the coordinator refuses that push. Fails with:
  //   INVALID_ARGUMENT    the push alone is above the limit
  //   RESOURCE_EXHAUSTED  there is no room now; the push may come again
  //   ABORTED             the step never ends with this limit; names the flag
  //                       and the bytes needed
  absl::Status Check(const WorkerId& worker, uint64_t clock, size_t bytes,
                     size_t pending_bytes, const HeldGradients& held,
                     const Coordinator& coordinator);

  // Returns true if a checkpoint's cut waits for a push that Check() has
  // refused, and the push will not fit even when all other pushes before the
  // cut are applied. `pending_behind` is the size of the held pushes beyond the
  // cut. `is_synchronous` is true if the model has a synchronous table; a step
  // before the cut may then wait for this push.
  bool NeverReaches(const CutPoint& cut, const PushId& push, size_t bytes,
                    size_t pending_behind, const HeldGradients& held,
                    bool is_synchronous) const;

 private:
  // The workers of a step whose pushes did not fit next to the step's other
  // pushes.
  struct Step {
    uint64_t version = 0;
    std::set<uint32_t> ranks;
  };

  absl::Status CheckStep(size_t policy, const PushId& push, size_t bytes,
                         const HeldGradients& held,
                         const Coordinator& coordinator);

  const size_t max_bytes_;
  std::vector<Step> steps_;  // by policy
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVER_PUSH_ROOM_H_
