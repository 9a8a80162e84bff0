// Encodes bundles of tensors as gRPC messages, and decodes them, without
// copying large tensors.
//
// The bytes are plain protobuf, as tensor.proto defines it. Generated code
// reads what Encode() makes. Decode() reads what generated code makes, also
// with fields out of order, unknown, repeated or merged. The limit of 2 GiB
// that generated code has does not apply.

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

// Tensors shorter than this are copied next to their headers: one more slice
// would cost more than the copy. In bytes.
inline constexpr size_t kCopyBelowBytes = 1024;

// Longer tensors start at a multiple of this from the start of the message. The
// field `padding` sees to that. So they are aligned if the receiver's buffer
// is. In bytes.
inline constexpr size_t kPayloadAlignment = 64;

// The most that a gRPC message can hold: its length prefix has 32 bits.
inline constexpr size_t kMaxMessageBytes = 0xffffffff;

// Encodes the tensors as field 1 of a message, and `header`, unless it is
// empty, as field 2. The result keeps the tensors' memory alive until gRPC has
// sent it. Returns INVALID_ARGUMENT for a name that is not UTF-8, and
// RESOURCE_EXHAUSTED above kMaxMessageBytes.
absl::StatusOr<grpc::ByteBuffer> Encode(const Bundle& bundle,
                                        absl::string_view header = {});

// Decodes the tensors of `message`, and writes the bytes of its field 2 to
// `header`, unless that is null.
//
// A tensor whose bytes lie in one slice of the message shares its memory. One
// that spans several slices is copied to aligned memory. If the tensors are
// less than half of a large message, all are copied, so that keeping them does
// not keep the rest of what the peer has sent.
//
// Accepts any bytes: returns a bundle, or INVALID_ARGUMENT, which says what is
// wrong and with which tensor, or RESOURCE_EXHAUSTED if there is no memory for
// a copy. Beside the message, takes memory only in proportion to its size.
absl::StatusOr<Bundle> Decode(const grpc::ByteBuffer& message,
                              std::string* header = nullptr);

// Returns whether `text` is valid UTF-8, which protobuf demands of a string.
bool IsUtf8(absl::string_view text);

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_CODEC_H_
