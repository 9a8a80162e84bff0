// Slices of a message that a transport has received into destinations.

#ifndef PENSTOCK_TENSOR_SERVICE_CODEC_LANDED_H_
#define PENSTOCK_TENSOR_SERVICE_CODEC_LANDED_H_

#include <cstddef>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "tensor_service/codec/slice_reader.h"
#include "tensor_service/destination.h"

namespace penstock::tensor {

// Finds slices that a transport has received into destinations. A transport
// selects a destination by size only, so a slice may be in the destination of
// another tensor, for example if two tensors of one size arrive in another
// order. Such a slice is copied elsewhere before its destination is
// overwritten. Not thread-safe.
class Landed {
 public:
  // Makes a finder. Both arguments must outlive this object. Call Start()
  // before reading `in`.
  Landed(SliceReader* in, const DestinationSet* destinations)
      : in_(in), destinations_(destinations) {}

  // Finds the slices on the host that are in destinations. Moves away slices
  // that do not fill a destination exactly. No known transport produces such
  // slices. Returns RESOURCE_EXHAUSTED if there is no memory for the move.
  absl::Status Start();
  // Moves away unread bytes that are in the destination. Returns
  // RESOURCE_EXHAUSTED if there is no memory for the move.
  absl::Status MoveAway(const Destination& destination);
  // Returns true if `data`, a part of the message, is in a destination.
  bool Contains(const char* data) const {
    return !slices_.empty() && destinations_->Overlapping(data, 1) != nullptr;
  }

 private:
  SliceReader* const in_;
  const DestinationSet* const destinations_;
  absl::flat_hash_map<const Destination*, size_t> slices_;  // the slice in each
};

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_CODEC_LANDED_H_
