// The request and the response of a call.

#ifndef PENSTOCK_TRANSPORT_RPC_CALL_H_
#define PENSTOCK_TRANSPORT_RPC_CALL_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "transport/memory/bytes.h"
#include "transport/memory/destinations.h"

namespace penstock {
namespace rpc {

// Caps the bytes of the metadata of a request or a response. Send larger data
// in the payload.
constexpr size_t kMaxMetadataBytes = 256 * 1024;
constexpr size_t kMaxMethodBytes = 255;
// Caps the bytes of the metadata at the end of a call. Smaller than
// kMaxMetadataBytes, because an error must also have room for the name
// kMetadataUrl.
constexpr size_t kMaxTrailingBytes = kMaxMetadataBytes - 1024;

// A request. The payload keeps its memory alive until the peer has received the
// payload. Do not write to the memory earlier, because the peer may read it in
// place (fabric::Endpoint::Expose()). Never write to a received payload, which
// may be in the peer's memory.
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

// The type URL of a payload of absl::Status (SetPayload). The payload carries
// the metadata of a failed unary call. The server's program adds the payload,
// and the client's program reads it.
constexpr char kMetadataUrl[] = "penstock.Metadata";

// The end of a call.
struct End {
  absl::Status status;
  // In a stream, the metadata that the server sends last. In a unary call, the
  // metadata of a response without a payload, if the status is OK.
  std::string metadata;
};

// Chooses memory for the payload of a received unary call, when the call's head
// has arrived. `head` has no payload yet, and `peer` is the client's address.
// Returns null for memory of the transport. A payload of exactly the size of
// one of the ranges is received there, if its path can do so; the request's
// payload then refers to that range.
//
//  Runs on any thread, under the connection's lock. Must be short, and must not
// call the server.
using Placer = std::function<std::shared_ptr<memory::Destinations>(
    const Request& head, const std::string& peer)>;

// Functions that a stream calls once, on the threads of other callbacks; see
// Client::Done and Server::Handler.
//
// Called with the next message, or with nothing if the stream has no further
// message.
using Received = std::function<void(absl::optional<memory::Payload>)>;
// Called with true when the peer had room for a message and the message was
// sent. To bound memory, write the next message only after this call. Called
// with false if the stream ended first.
using Accepted = std::function<void(bool)>;

// The threads on which a client or a server runs callbacks. With either value,
// callbacks of one connection run one after another.
enum class CallbackThread {
  // The thread of progress::EventLoop::GetPolling().
  kLoop,
  // Any thread that brings input, for example a thread in Waiter::Wait(), or in
  // a call of gRPC over Penstock. A thread that waits for an answer then
  // receives it without the help of another thread. A callback must be short,
  // because its thread may be the only one that polls other paths. A callback
  // must take no lock that such a thread may hold. Callbacks of calls that
  // could not be sent run on the loop's thread, perhaps at the same time as
  // other callbacks.
  kAny,
};

}  // namespace rpc
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_RPC_CALL_H_
