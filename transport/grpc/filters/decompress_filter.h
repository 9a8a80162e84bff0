// Decompresses received messages of gRPC calls, up to a limit.

#ifndef PENSTOCK_TRANSPORT_GRPC_FILTERS_DECOMPRESS_FILTER_H_
#define PENSTOCK_TRANSPORT_GRPC_FILTERS_DECOMPRESS_FILTER_H_

#include <cstdint>

#include "src/core/lib/config/core_configuration.h"
#include "transport/grpc/internal/grpc_abi.h"

namespace penstock {
namespace core {

// The name of an integer channel argument. The argument caps the decompressed
// bytes of a message on channels without a limit for received messages.
// Unlimited if the argument is not set. A message may always grow by a factor
// of kDecompressedPerByte, which honest peers rarely exceed.
constexpr char kMaxDecompressedArg[] = "penstock.max_decompressed_bytes";
constexpr uint64_t kDecompressedPerByte = 8;

// Replaces gRPC's decompressing filter on every channel and server that
// decompresses. gRPC's filter decompresses the whole message before it checks
// the limit, so that 1 MB of input can take 1 to 2 GB of memory. The new filter
// stops at the limit, and fails with the same status.
void RegisterDecompressFilter(grpc_core::CoreConfiguration::Builder* builder);

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_FILTERS_DECOMPRESS_FILTER_H_
