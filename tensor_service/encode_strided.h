// Encodes strided views beside tensors.

#ifndef PENSTOCK_TENSOR_SERVICE_ENCODE_STRIDED_H_
#define PENSTOCK_TENSOR_SERVICE_ENCODE_STRIDED_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "grpcpp/support/byte_buffer.h"
#include "tensor_service/allocator.h"
#include "tensor_service/strided.h"
#include "tensor_service/tensor.h"

namespace penstock::tensor {

// Shorter runs are packed. A slice costs as much as the copy of some KiB. Over
// shm the receiver then copies instead of the sender, into new memory: with
// runs of 16 KiB that took more than twice as long as to pack them, with 64 KiB
// about as long. Over tcp and HTTP/2 in place is faster from 8 KiB on, by a
// quarter at 64 KiB. In bytes.
inline constexpr size_t kMinRunBytes = 64 * 1024;

// The most slices of a message with views that are sent in place. Penstock
// sends no more parts than that in place (kMaxParts). Views that do not fit
// into what is left are packed.
inline constexpr size_t kMaxSlices = 512;

// Returns how Encode() sends a view if `slices_left` are left: true for its
// runs, where they lie; false for a packed copy. It sends the runs if
//  - there is just one, of at least kCopyBelowBytes, or
//  - all have at least kMinRunBytes, and a multiple of kPartAlignment, so that
//    what follows stays aligned, and they are at most `slices_left`.
bool IsSentInPlace(const StridedView& view, size_t slices_left);

// Encodes as Encode(bundle, header) does, and each view after the bundle's
// tensors as the tensor that Pack() would make of it. The result keeps the
// views' buffers alive.
//
// A view that is not sent in place is packed once, into memory of `allocator`,
// which the message then sends in place; null is DefaultAllocator(). Returns
// that allocator's RESOURCE_EXHAUSTED, and errors as Encode() does. Views have
// no checksums.
absl::StatusOr<grpc::ByteBuffer> Encode(const Bundle& bundle,
                                        absl::Span<const NamedView> views,
                                        absl::string_view header = {},
                                        Allocator* allocator = nullptr);

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_ENCODE_STRIDED_H_
