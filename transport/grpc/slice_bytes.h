// Converts between gRPC's slices and memory::Bytes, which share the memory.

#ifndef PENSTOCK_TRANSPORT_GRPC_SLICE_BYTES_H_
#define PENSTOCK_TRANSPORT_GRPC_SLICE_BYTES_H_

#include "src/core/lib/slice/slice.h"
#include "src/core/lib/slice/slice_buffer.h"
#include "transport/grpc/grpc_abi.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace core {

// Returns a payload that shares the slices of `buffer` and keeps them alive.
// Slices in memory of devices are ready to be read (device_slices.h).
memory::Payload ToPayload(const grpc_core::SliceBuffer& buffer);

// Returns a slice that shares `bytes` and keeps them alive. Copies bytes that
// have no owner, or fit into the slice itself. Memory of a device's is declared
// (memory::DeviceRange) as long as the slice lives.
grpc_core::Slice ToSlice(memory::Bytes bytes);

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_SLICE_BYTES_H_
