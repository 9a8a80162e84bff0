// Decompresses messages up to a limit.

#ifndef PENSTOCK_TRANSPORT_GRPC_FILTERS_INFLATE_H_
#define PENSTOCK_TRANSPORT_GRPC_FILTERS_INFLATE_H_

#include <cstdint>

#include "grpc/impl/codegen/compression_types.h"
#include "src/core/lib/slice/slice_buffer.h"
#include "transport/grpc/internal/grpc_abi.h"

namespace penstock {
namespace core {

enum class Inflated {
  kWhole,    // the output has the whole message
  kTooLong,  // the message exceeds the limit
  kDamaged,  // the input is malformed, or memory ran out
};

// Decompresses `input` and appends the result to `output`. Stops as soon as the
// result exceeds `most` bytes. The call therefore takes at most `most` bytes
// and 1 MiB of memory, even if the message expands a thousandfold. Accepts all
// messages that gRPC's grpc_msg_decompress() accepts, and is safe for any
// input.
Inflated InflateMessage(grpc_compression_algorithm algorithm,
                        const grpc_core::SliceBuffer& input, uint64_t most,
                        grpc_core::SliceBuffer* output);

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_FILTERS_INFLATE_H_
