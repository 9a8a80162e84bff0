// Makes and reads messages in one of several forms. The form determines the
// work of sender and receiver in addition to moving bytes.

#ifndef PENSTOCK_BENCH_RPC_MESSAGE_MESSAGE_H_
#define PENSTOCK_BENCH_RPC_MESSAGE_MESSAGE_H_

#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "bench/rpc/message/buffers.h"
#include "grpcpp/support/byte_buffer.h"

namespace penstock {
namespace bench {

enum class MessageForm { kRaw, kProtobuf, kTensor };

// Sets the form of all messages that this process makes with MakeMessage() and
// reads with ReadMessage(). Call it before the first message. The default is
// raw.
void SetMessageForm(MessageForm form);

// Sets the number and sizes of all messages' buffers. Call it before the first
// message. The default is one buffer. `mixed` applies to messages of exactly
// the sum of its sizes. Other messages are divided into `count` equal buffers.
// Messages of kMinPayload bytes always have one buffer.
void SetMessageBuffers(int count, BufferSizes mixed);

// Makes a message of `bytes` bytes, whose buffers `write` fills:
//
//   raw       slices, allocated and written
//   protobuf  like a stub: a new object, whose field of type `bytes`, or
//             `repeated bytes`, is resized and written, then serialised
//   tensor    new tensors of the tensor service, in the pool, written and
//             encoded
//
// Ends the program if the device fails.
grpc::ByteBuffer MakeMessage(size_t bytes, WritePart write);

// Passes the message's bytes to `read`, in order, in one or more pieces. Raw:
// in place. Protobuf: first parses the message into a new object, like a stub.
// Tensor: first decodes the message. Returns DATA_LOSS for a malformed message.
absl::Status ReadMessage(
    const grpc::ByteBuffer& message,
    absl::FunctionRef<void(absl::Span<const uint8_t>)> read);

// Make and read a message of the raw form, even if SetMessageForm() has set
// another form.
grpc::ByteBuffer MakeRawMessage(size_t bytes,
                                absl::FunctionRef<void(uint8_t*)> write);
void ReadRawMessage(const grpc::ByteBuffer& message,
                    absl::FunctionRef<void(absl::Span<const uint8_t>)> read);

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_MESSAGE_MESSAGE_H_
