// Encodes and decodes gRPC's metadata. The following take one byte:
// - a key that gRPC knows;
// - a common entry, key and value, that nearly every call has;
// - any other entry that repeats on a connection (metadata_table.h).
//
// docs/protocol.md lists the bytes.

#ifndef PENSTOCK_TRANSPORT_GRPC_METADATA_CODEC_H_
#define PENSTOCK_TRANSPORT_GRPC_METADATA_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "src/core/lib/transport/metadata_batch.h"
#include "transport/grpc/internal/grpc_abi.h"
#include "transport/grpc/metadata_table.h"

namespace penstock {
namespace core {

// Sends the number of an entry to the peer. The peer must receive the number
// before the metadata that is being encoded.
using TellOfEntry =
    std::function<void(uint8_t number, absl::string_view entry)>;

// Encodes `batch`, and overwrites `*out` with the result. Reusing a string
// saves allocations. Encodes an entry that has a number in `sent` as that
// number. Calls `tell` for each entry that gets a number in this call.
void EncodeMetadata(const grpc_metadata_batch& batch, SentEntries* sent,
                    const TellOfEntry& tell, std::string* out);

// Returns the encoded trailers of a stream that ends with `status`.
std::string EncodeStatus(const absl::Status& status);

// Decodes `bytes` and adds the entries to `*batch`. The values share a copy of
// the bytes, or the entries of `received`. Sets `*size` to the size that the
// entries would have without numbers. The result satisfies gRPC's assertions
// about a transport's metadata.
//
// Fails with one of these errors, and leaves the batch empty:
//  - INVALID_ARGUMENT if the bytes are malformed, or gRPC does not allow a key
//    or value;
//  - RESOURCE_EXHAUSTED if the entries that numbers represent exceed
//    `max_bytes`.
absl::Status DecodeMetadata(absl::string_view bytes,
                            const ReceivedEntries& received, size_t max_bytes,
                            grpc_metadata_batch* batch, size_t* size);

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_METADATA_CODEC_H_
