// Encodes strided views next to tensors.

#ifndef PENSTOCK_TENSOR_SERVICE_CODEC_ENCODE_STRIDED_H_
#define PENSTOCK_TENSOR_SERVICE_CODEC_ENCODE_STRIDED_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "grpcpp/support/byte_buffer.h"
#include "tensor_service/allocator.h"
#include "tensor_service/strided.h"
#include "tensor_service/tensor.h"

namespace penstock::tensor {

// The shortest run that is sent in place, in bytes; shorter runs are packed. A
// slice costs as much as copying a few KiB. Over shm, the receiver then copies
// instead of the sender, into new memory: sending runs of 16 KiB in place took
// more than twice as long as packing them, and runs of 64 KiB about as long.
// Over tcp and HTTP/2, sending in place is faster from 8 KiB on, by a quarter
// at 64 KiB.
inline constexpr size_t kMinRunBytes = 64 * 1024;

// Caps the slices of a message with views that are sent in place. Equals the
// number of parts that Penstock sends in place (kMaxParts). Views beyond the
// cap are packed.
inline constexpr size_t kMaxSlices = 512;

// Returns true if Encode() sends the view's runs in place when `slices_left`
// slices are left, and false if Encode() packs the view. The runs are sent in
// place if
// - there is exactly one run, of at least kCopyBelowBytes, or
// - there are at most `slices_left` runs, and the length of each run is at
//   least kMinRunBytes and a multiple of kPartAlignment, which keeps the
//   following bytes aligned.
bool IsSentInPlace(const StridedView& view, size_t slices_left);

// Encodes like Encode(bundle, header), and appends each view as the tensor that
// Pack() would make. The result keeps the views' buffers alive.
//
// A view that is not sent in place is packed once, into memory of `allocator`,
// and sent from there. A null `allocator` selects DefaultAllocator(). Returns
// the allocator's RESOURCE_EXHAUSTED, and the errors of Encode(). Views have no
// checksums.
absl::StatusOr<grpc::ByteBuffer> Encode(const Bundle& bundle,
                                        absl::Span<const NamedView> views,
                                        absl::string_view header = {},
                                        Allocator* allocator = nullptr);

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_CODEC_ENCODE_STRIDED_H_
