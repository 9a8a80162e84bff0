// The request and the response of a call.

#ifndef PENSTOCK_TRANSPORT_RPC_CALL_H_
#define PENSTOCK_TRANSPORT_RPC_CALL_H_

#include <cstddef>
#include <string>

#include "absl/time/time.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace rpc {

// Limits the metadata of a request or an answer, in bytes. Larger data belongs
// into the payload.
constexpr size_t kMaxMetadataBytes = 256 * 1024;
constexpr size_t kMaxMethodBytes = 255;

// A payload keeps its memory alive until the peer has it, and is not copied
// where the path can reach that memory: see fabric::Endpoint::Expose(). Do not
// write to it meanwhile. A received payload may lie in the peer's memory, as
// long as it is held; nobody may write to it.
struct Request {
  std::string method;
  std::string metadata;
  memory::Payload payload;
  // From when the call is made until it is answered.
  absl::Duration timeout = absl::InfiniteDuration();
};

struct Response {
  std::string metadata;
  memory::Payload payload;
};

}  // namespace rpc
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_RPC_CALL_H_
