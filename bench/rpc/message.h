// The form of messages: what a sender makes of its bytes, and what a receiver
// has to do before it has them.

#ifndef PENSTOCK_BENCH_RPC_MESSAGE_H_
#define PENSTOCK_BENCH_RPC_MESSAGE_H_

#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "bench/rpc/buffers.h"
#include "grpcpp/support/byte_buffer.h"
#include "tensor_service/device.h"

namespace penstock {
namespace bench {

enum class MessageForm { kRaw, kProtobuf, kTensor };

// Sets the form of all messages that this process makes with MakeMessage(), and
// reads with ReadMessage(). Call it before the first; raw without it.
void SetMessageForm(MessageForm form);

// Sets of which buffers a message consists, in the same way; of one without it.
// `mixed` are those of a message of exactly their sum; others are divided into
// `count` equal ones. Messages of kMinPayload bytes are always one.
void SetMessageBuffers(int count, BufferSizes mixed);

// Has messages be made, from now on, on the device of device_message.h. Not
// those of protobuf. UseDevice() of devices.h was called.
void SetMessagesOnDevice(const tensor::Device& device);

// Writes one buffer, which begins at the byte `offset` of the message.
using WritePart =
    absl::FunctionRef<void(absl::Span<uint8_t> part, size_t offset)>;

// Makes a message of `bytes` bytes, whose buffers `write` fills in:
//
//   raw       slices, allocated and written
//   protobuf  as a stub does: a new object, whose field of type `bytes`, or
//             `repeated bytes`, is resized and written; then it is serialised
//   tensor    new tensors of the tensor service, in the pool, written and
//             encoded
//
// A device that fails ends the program, with its error.
grpc::ByteBuffer MakeMessage(size_t bytes, WritePart write);

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
