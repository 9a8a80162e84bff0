// Encodes and decodes gRPC's metadata. Each of these takes one byte:
//  - a key that gRPC knows;
//  - a whole entry that nearly every call has;
//  - another entry that repeats on a connection (metadata_table.h).
//
// docs/protocol.md lists the numbers.

#ifndef PENSTOCK_TRANSPORT_GRPC_METADATA_CODEC_H_
#define PENSTOCK_TRANSPORT_GRPC_METADATA_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "src/core/lib/transport/metadata_batch.h"
#include "transport/grpc/grpc_abi.h"
#include "transport/grpc/metadata_table.h"

namespace penstock {
namespace core {

// Tells the peer the number of an entry. The peer must get this message before
// the metadata that is being encoded.
using TellOfEntry =
    std::function<void(uint8_t number, absl::string_view entry)>;

// Encodes `batch`, and overwrites `*out` with the result. Reusing a string
// saves allocations. Replaces entries that have a number in `sent` by that
// number. Calls `tell` for each entry that has just got a number.
void EncodeMetadata(const grpc_metadata_batch& batch, SentEntries* sent,
                    const TellOfEntry& tell, std::string* out);

// Returns the encoded trailers of a stream that ends with `status`.
std::string EncodeStatus(const absl::Status& status);

// Decodes `bytes` and adds the entries to `*batch`. The values share a copy of
// the bytes, or the entries of `received`. Sets `*size` to the size that the
// bytes would have without numbers. The result satisfies gRPC's assertions
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
