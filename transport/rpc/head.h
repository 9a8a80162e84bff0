// The metadata of a call's frames: all of a request and of an answer but the
// payload. Total functions.

#ifndef PENSTOCK_TRANSPORT_RPC_HEAD_H_
#define PENSTOCK_TRANSPORT_RPC_HEAD_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transport/rpc/call.h"

namespace penstock {
namespace rpc {

// The most bytes that a head may have.
constexpr size_t kMaxHeadBytes = kMaxMetadataBytes + 4096;

// kHeaders of the client: u64 timeout in microseconds, 0 for none; u8 length of
// the method; the method; the metadata. Returns INVALID_ARGUMENT if the method
// is empty or too long, or the metadata too large.
absl::StatusOr<std::string> EncodeRequest(const Request& request);
// Returns a request without its payload, or INVALID_ARGUMENT.
absl::StatusOr<Request> ParseRequest(absl::string_view head);

// How an answer ends.
struct End {
  absl::Status status;
  std::string metadata;  // of an OK one, if the answer has no payload
};

// kTrailers of the server: u32 status code; u32 length of its message; the
// message, cut to 4,000 bytes; the metadata of an OK status, or the payloads of
// another one (absl::Status::SetPayload), each as u32 length of the URL, the
// URL, u32 length of the value, the value: at most 16 of them, of at most
// kMaxMetadataBytes. The kHeaders of an answer with a payload are its metadata,
// as it is.
std::string EncodeEnd(const End& end);
absl::StatusOr<End> ParseEnd(absl::string_view head);

}  // namespace rpc
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_RPC_HEAD_H_
