// Bundles of tensors to and from gRPC messages without copying a payload.
//
// The bytes are plain protobuf, those of tensor.proto: generated code reads
// what Encode() makes and Decode() reads what generated code makes, fields out
// of order, unknown, repeated or merged included. Only the 2 GiB limit of
// generated code does not apply.

#ifndef PENSTOCK_TENSOR_SERVICE_CODEC_H_
#define PENSTOCK_TENSOR_SERVICE_CODEC_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "grpcpp/support/byte_buffer.h"
#include "tensor_service/tensor.h"

namespace penstock::tensor {

// Payloads shorter than this are copied next to their headers: below it, one
// more slice costs more than the copy.
inline constexpr size_t kCopyBelowBytes = 1024;

// Longer ones start at a multiple of this from the start of the message, by
// means of the `padding` field, so that they are aligned in a receive buffer
// that is.
inline constexpr size_t kPayloadAlignment = 64;

// What a gRPC message can hold: its length prefix has 32 bits.
inline constexpr size_t kMaxMessageBytes = 0xffffffff;

// The message whose field 1 is the tensors and whose field 2, unless `header`
// is empty, those bytes. It holds references to the tensors' memory until gRPC
// has sent it and must not outlive whoever the memory was wrapped from.
// INVALID_ARGUMENT for a name that is not UTF-8, RESOURCE_EXHAUSTED above
// kMaxMessageBytes.
absl::StatusOr<grpc::ByteBuffer> Encode(const Bundle& bundle,
                                        absl::string_view header = {});

// The tensors of `message`, and the bytes of its field 2 into `header` unless
// that is null. A payload that lies in one slice of the message is referred to,
// one that spans several is copied, alone, into aligned memory. Any bytes at
// all give a bundle or INVALID_ARGUMENT, which names the tensor and what is
// wrong with it; beyond the message, memory is taken only in proportion to it.
// Where less than half of a large message is payload, all of that is copied, so
// that who keeps the tensors does not keep what else a peer has sent.
absl::StatusOr<Bundle> Decode(const grpc::ByteBuffer& message,
                              std::string* header = nullptr);

// Whether protobuf accepts `text` as a string: structurally valid UTF-8.
bool IsUtf8(absl::string_view text);

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_CODEC_H_
