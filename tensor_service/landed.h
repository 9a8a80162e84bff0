// Slices of a message that a transport has received into destinations.

#ifndef PENSTOCK_TENSOR_SERVICE_LANDED_H_
#define PENSTOCK_TENSOR_SERVICE_LANDED_H_

#include <cstddef>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "tensor_service/destination.h"
#include "tensor_service/slice_reader.h"

namespace penstock::tensor {

// A transport finds a destination by its size, so a slice may lie in that of
// another tensor: of two of one size that come in another order, say. Then what
// lies there is moved away before its place is written to. Not thread-safe.
class Landed {
 public:
  // Both outlive it. Start() comes before anything is read.
  Landed(SliceReader* in, const DestinationSet* destinations)
      : in_(in), destinations_(destinations) {}

  // Finds the slices on the host that lie in destinations. Moves away those
  // that do not have the place of one, as no transport leaves them. Returns
  // RESOURCE_EXHAUSTED if there is no memory for that, as MoveAway() does.
  absl::Status Start();
  // Moves away what lies in the destination and is yet to be read.
  absl::Status MoveAway(const Destination& destination);
  // Whether a byte at `data`, of the message, is in memory of a destination.
  bool Contains(const char* data) const {
    return !slices_.empty() && destinations_->Overlapping(data, 1) != nullptr;
  }

 private:
  SliceReader* const in_;
  const DestinationSet* const destinations_;
  absl::flat_hash_map<const Destination*, size_t> slices_;  // which lie there
};

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_LANDED_H_
