// Between gRPC's slices and memory::Bytes, sharing and never copying.

#ifndef PENSTOCK_TRANSPORT_GRPC_SLICE_BYTES_H_
#define PENSTOCK_TRANSPORT_GRPC_SLICE_BYTES_H_

#include "src/core/lib/slice/slice.h"
#include "src/core/lib/slice/slice_buffer.h"
#include "transport/grpc/grpc_abi.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace core {

// The payload shares the buffer's slices, which stay alive as long as it.
memory::Payload ToPayload(const grpc_core::SliceBuffer& buffer);

// A slice that keeps `bytes` alive; what has no owner, or fits into the slice
// itself, is copied.
grpc_core::Slice ToSlice(memory::Bytes bytes);

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_SLICE_BYTES_H_
