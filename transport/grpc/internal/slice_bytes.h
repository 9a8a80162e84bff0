// Converts between gRPC slices and memory::Bytes without copying most bytes.

#ifndef PENSTOCK_TRANSPORT_GRPC_INTERNAL_SLICE_BYTES_H_
#define PENSTOCK_TRANSPORT_GRPC_INTERNAL_SLICE_BYTES_H_

#include "src/core/lib/slice/slice.h"
#include "src/core/lib/slice/slice_buffer.h"
#include "transport/grpc/internal/grpc_abi.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace core {

// Returns a payload that shares the slices of `buffer` and keeps them alive.
// Device slices must be ready to be read (device_slices.h).
memory::Payload ToPayload(const grpc_core::SliceBuffer& buffer);

// Returns a slice that shares `bytes` and keeps them alive. Copies bytes
// without an owner, and bytes that fit into the grpc_slice struct. Declares
// device memory (memory::DeviceRange) for the lifetime of the slice.
grpc_core::Slice ToSlice(memory::Bytes bytes);

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_INTERNAL_SLICE_BYTES_H_
