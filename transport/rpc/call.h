// The request and the response of a call.

#ifndef PENSTOCK_TRANSPORT_RPC_CALL_H_
#define PENSTOCK_TRANSPORT_RPC_CALL_H_

#include <cstddef>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace rpc {

// Caps the bytes of the metadata of a request or a response. Send larger data
// in the payload.
constexpr size_t kMaxMetadataBytes = 256 * 1024;
constexpr size_t kMaxMethodBytes = 255;
// Caps the bytes of the metadata at the end of a call. Smaller than
// kMaxMetadataBytes, because an error also carries this metadata's name.
constexpr size_t kMaxTrailingBytes = kMaxMetadataBytes - 1024;

// A request. A payload keeps its memory alive until the peer has received the
// payload. The payload is not copied if the path can reach its memory; see
// fabric::Endpoint::Expose(). Do not write to the memory until then. A received
// payload may lie in the peer's memory as long as the payload is held. Nobody
// may write to a received payload.
struct Request {
  std::string method;
  std::string metadata;
  memory::Payload payload;
  // The timeout from Client::Call() to the answer.
  absl::Duration timeout = absl::InfiniteDuration();
};

struct Response {
  std::string metadata;
  memory::Payload payload;
};

// Names the payload of a status (absl::Status::SetPayload) that carries the
// metadata of a unary call's error, in both directions: the server sets the
// payload, and the client finds it.
constexpr char kMetadataUrl[] = "penstock.Metadata";

// The end of a call.
struct End {
  absl::Status status;
  // The metadata that a stream's server sends last. In a unary call, the
  // metadata of a response without a payload, if the status is OK.
  std::string metadata;
};

// Functions that a stream calls once. They run as other callbacks do; see
// Client::Done and Server::Handler.
//
// Receives the next message. Gets nothing if no message follows.
using Received = std::function<void(absl::optional<memory::Payload>)>;
// Learns that a message has left for the peer, which had room for it. Write the
// next message then, or the messages pile up in memory. Gets false if the
// stream has ended before.
using Accepted = std::function<void(bool)>;

// The threads on which a client or a server runs callbacks. In both cases,
// callbacks of one connection run one after another.
enum class CallbackThread {
  // The thread of progress::EventLoop::GetPolling().
  kLoop,
  // Each thread that brings input, for example in Waiter::Wait(), or in a call
  // of gRPC over Penstock. A thread that waits for an answer then need not be
  // woken by another thread. A callback must be short, because other paths are
  // perhaps not polled meanwhile. Nor may it take a lock that such a thread may
  // hold. Callbacks of calls that could not be sent run on the loop's thread,
  // perhaps at the same time as others.
  kAny,
};

}  // namespace rpc
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_RPC_CALL_H_
