// Converts the placement map from and to a message.

#ifndef PENSTOCK_PS_PLACEMENT_WIRE_H_
#define PENSTOCK_PS_PLACEMENT_WIRE_H_

#include "absl/status/statusor.h"
#include "ps/placement/placement.pb.h"
#include "ps/placement/placement_map.h"

namespace penstock::ps {

v1::PlacementMap ToMessage(const PlacementMap& map);

// Converts an untrusted message. Returns INVALID_ARGUMENT as
// PlacementMap::FromParts() does. Never needs more memory than the message
// itself.
absl::StatusOr<PlacementMap> FromMessage(const v1::PlacementMap& message);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_PLACEMENT_WIRE_H_
