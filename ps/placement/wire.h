// The placement map as a message.

#ifndef PENSTOCK_PS_PLACEMENT_WIRE_H_
#define PENSTOCK_PS_PLACEMENT_WIRE_H_

#include "absl/status/statusor.h"
#include "ps/placement/placement.pb.h"
#include "ps/placement/placement_map.h"

namespace penstock::ps {

v1::PlacementMap ToMessage(const PlacementMap& map);

// Takes a message that may be a peer's. Returns INVALID_ARGUMENT as
// PlacementMap::FromParts() does. Needs no more memory than the message itself
// does, whatever is in it.
absl::StatusOr<PlacementMap> FromMessage(const v1::PlacementMap& message);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_PLACEMENT_WIRE_H_
