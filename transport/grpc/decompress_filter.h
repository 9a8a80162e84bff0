// Decompresses what gRPC's calls receive, up to their limit.

#ifndef PENSTOCK_TRANSPORT_GRPC_DECOMPRESS_FILTER_H_
#define PENSTOCK_TRANSPORT_GRPC_DECOMPRESS_FILTER_H_

#include <cstdint>

#include "src/core/lib/config/core_configuration.h"
#include "transport/grpc/grpc_abi.h"

namespace penstock {
namespace core {

// A channel argument, an int: limits the decompressed bytes of a message on
// channels without a limit of their own for received messages. A message may
// always grow eightfold, which data of an honest peer rarely exceeds. Not set:
// no limit.
constexpr char kMaxDecompressedArg[] = "penstock.max_decompressed_bytes";
constexpr uint64_t kDecompressedPerByte = 8;

// Puts a filter in the place of gRPC's own, on every channel and server that
// decompresses. gRPC's decompresses all of a message, and then compares its
// length with the limit: a megabyte takes a gigabyte, or two, before it is
// refused. This one stops at the limit, and refuses with the same status.
void RegisterDecompressFilter(grpc_core::CoreConfiguration::Builder* builder);

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_DECOMPRESS_FILTER_H_
