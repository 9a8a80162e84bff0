// Decompresses messages up to a limit.

#ifndef PENSTOCK_TRANSPORT_GRPC_INFLATE_H_
#define PENSTOCK_TRANSPORT_GRPC_INFLATE_H_

#include <cstdint>

#include "grpc/impl/codegen/compression_types.h"
#include "src/core/lib/slice/slice_buffer.h"
#include "transport/grpc/grpc_abi.h"

namespace penstock {
namespace core {

enum class Inflated {
  kWhole,    // the output has all of the message
  kTooLong,  // it exceeds the limit
  kDamaged,  // the input is no such message, or there is no memory
};

// Appends what `input` decompresses to, at most `most` bytes, to `output`.
// Stops where it exceeds that, so that a megabyte, which may stand for a
// gigabyte, takes memory for `most` bytes and 1 MiB. Accepts any bytes, and
// what gRPC's own grpc_msg_decompress() accepts.
Inflated InflateMessage(grpc_compression_algorithm algorithm,
                        const grpc_core::SliceBuffer& input, uint64_t most,
                        grpc_core::SliceBuffer* output);

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_INFLATE_H_
