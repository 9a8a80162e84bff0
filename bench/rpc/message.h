// The form of messages: what a sender makes of its bytes, and what a receiver
// has to do before it has them.

#ifndef PENSTOCK_BENCH_RPC_MESSAGE_H_
#define PENSTOCK_BENCH_RPC_MESSAGE_H_

#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "grpcpp/support/byte_buffer.h"

namespace penstock {
namespace bench {

enum class MessageForm { kRaw, kProtobuf, kTensor };

// Sets the form of all messages that this process makes with MakeMessage(), and
// reads with ReadMessage(). Call it before the first; raw without it.
void SetMessageForm(MessageForm form);

// Makes a message of `bytes` bytes, which `write` fills in:
//
//   raw       one slice, allocated and written
//   protobuf  as a stub does: a new object, whose field of type `bytes` is
//             resized and written; then it is serialised
//   tensor    a new tensor of the tensor service, in the pool, written and
//             encoded
grpc::ByteBuffer MakeMessage(size_t bytes,
                             absl::FunctionRef<void(uint8_t*)> write);

// Gives the message's bytes to `read`, in order, in one piece or several. Raw:
// where they lie. Protobuf: parses the message to a new object first, as a stub
// does. Tensor: decodes it. Returns DATA_LOSS for what is no such message.
absl::Status ReadMessage(
    const grpc::ByteBuffer& message,
    absl::FunctionRef<void(absl::Span<const uint8_t>)> read);

// Makes a raw message, and reads one, whatever the form is.
grpc::ByteBuffer MakeRawMessage(size_t bytes,
                                absl::FunctionRef<void(uint8_t*)> write);
void ReadRawMessage(const grpc::ByteBuffer& message,
                    absl::FunctionRef<void(absl::Span<const uint8_t>)> read);

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_MESSAGE_H_
