// What a call asks, and what it is answered.

#ifndef PENSTOCK_TRANSPORT_RPC_CALL_H_
#define PENSTOCK_TRANSPORT_RPC_CALL_H_

#include <cstddef>
#include <string>

#include "absl/time/time.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace rpc {

// How much metadata a request or an answer may have, in bytes. What is larger
// belongs into the payload.
constexpr size_t kMaxMetadataBytes = 256 * 1024;
constexpr size_t kMaxMethodBytes = 255;

// A payload keeps its memory alive until the peer has it, and is not copied
// where the path can reach that memory: see fabric::Endpoint::Expose(). Do not
// write to it meanwhile. What is received may lie in the peer's memory, as long
// as it is held; nobody may write to it.
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
