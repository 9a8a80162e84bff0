// Decides which elements of a step need no copy.

#ifndef PENSTOCK_COLLECTIVES_NET_PLACEMENT_H_
#define PENSTOCK_COLLECTIVES_NET_PLACEMENT_H_

#include <cstdint>

#include "absl/types/span.h"
#include "collectives/schedule/schedule.h"
#include "tensor_service/dtype.h"

namespace penstock::collectives {

// The actions of one rank in one step.
struct Step {
  absl::Span<const Action> actions;
  int rank = 0;
  tensor::DType dtype = tensor::DType::kUint8;
  bool is_last = false;  // of the operation
};

// Returns the number of elements, from the first one, that `send`, an action of
// the step, may send from where they lie. The others are copied.
int64_t LentElements(const Step& step, const Action& send);

// Returns true if the elements of `receive`, an action of the step, may be
// received where they belong, as soon as no earlier step uses the place.
bool IsReceivedInPlace(const Step& step, const Action& receive);

}  // namespace penstock::collectives

#endif  // PENSTOCK_COLLECTIVES_NET_PLACEMENT_H_
