// gRPC's metadata to bytes and back. Keys that gRPC knows, and values that
// nearly every call has, are one byte; docs/protocol.md has their numbers. What
// else repeats on a connection is one byte, too (metadata_table.h).

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

// Tells the peer of a number, before what is being encoded can leave.
using TellOfEntry =
    std::function<void(uint8_t number, absl::string_view entry)>;

// Replaces what `out` holds; one that is used again saves allocations. Entries
// that are in `sent` go by their numbers; `tell` is called for new ones.
void EncodeMetadata(const grpc_metadata_batch& batch, SentEntries* sent,
                    const TellOfEntry& tell, std::string* out);

// The trailers of a stream that ends with `status`, without a batch.
std::string EncodeStatus(const absl::Status& status);

// Adds what `bytes` holds to `batch`, whose values share a copy of them, or the
// entries of `received`. Sets `*size` to the size without numbers. What it adds
// keeps what gRPC asserts of a transport's metadata. On an error the batch is
// empty: INVALID_ARGUMENT where the bytes are cut short, or a key or value is
// not one of gRPC; RESOURCE_EXHAUSTED where numbers stand for more than
// `max_bytes`.
absl::Status DecodeMetadata(absl::string_view bytes,
                            const ReceivedEntries& received, size_t max_bytes,
                            grpc_metadata_batch* batch, size_t* size);

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_METADATA_CODEC_H_
