// Encodes and parses the heads of calls: all parts of a request or a response
// except its payload. A head is sent as the payload of the frame type named in
// the comment of its format. Safe on any input.

#ifndef PENSTOCK_TRANSPORT_RPC_HEAD_H_
#define PENSTOCK_TRANSPORT_RPC_HEAD_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transport/rpc/call.h"

namespace penstock {
namespace rpc {

// Caps the bytes of a head.
constexpr size_t kMaxHeadBytes = kMaxMetadataBytes + 4096;

// The format of the client's kHeaders:
//
//   u64    timeout in microseconds, 0 for none
//   u8     0, only if the call is a stream
//   u8     length of the method
//   bytes  the method
//   bytes  the metadata, to the end
//
// Returns INVALID_ARGUMENT if the method is empty or too long, or the metadata
// too large.
absl::StatusOr<std::string> EncodeRequest(const Request& request,
                                          bool is_stream = false);
// Returns a request without its payload, and sets *is_stream. Returns
// INVALID_ARGUMENT for bytes that EncodeRequest() does not write, for example
// metadata above kMaxMetadataBytes.
absl::StatusOr<Request> ParseRequest(absl::string_view head, bool* is_stream);

// The format of the server's kTrailers:
//
//   u32    status code
//   u32    length of the message
//   bytes  the message, cut to 4,000 bytes
//   bytes  if the status is OK, the metadata, to the end; else the payloads of
//          the status (absl::Status::SetPayload), each as
//            u32 length of the URL, the URL, u32 length of the value, the value
//          The metadata of an error, if any, is the payload kMetadataUrl, which
//          comes first. A status with such a payload is sent without it.
//
// Contains at most 16 payloads with at most kMaxMetadataBytes in total.
std::string EncodeEnd(const End& end);
// Returns the end of a response. Returns INVALID_ARGUMENT for bytes that
// EncodeEnd() does not write.
absl::StatusOr<End> ParseEnd(absl::string_view head);

}  // namespace rpc
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_RPC_HEAD_H_
