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
#include "absl/types/span.h"
#include "grpcpp/support/byte_buffer.h"
#include "tensor_service/checksum.h"
#include "tensor_service/destination.h"
#include "tensor_service/device_tensors.h"
#include "tensor_service/tensor.h"

namespace penstock::tensor {

// Tensors shorter than this are copied next to their headers: one more slice
// would cost more than the copy. In bytes.
inline constexpr size_t kCopyBelowBytes = 1024;

// Tensors on devices that have so many bytes are lent to the transport, where
// it can send from there; shorter ones are copied to the host, as what that
// takes is less than what a transport does to reach a device. In bytes.
inline constexpr size_t kLendAtLeast = 64 << 10;

// Longer tensors begin at a multiple of this from the start of the message, if
// their size is a multiple of kPartAlignment, and else end at one. Shorter ones
// begin at a multiple of their element size. The field `padding` sees to that.
// In bytes.
//
// So the elements of each tensor are aligned if the receiver has the message in
// one piece that is aligned to 8 bytes. They are, too, if it has some of the
// longer tensors as pieces of their own, wherever those lie, and what is
// between them as pieces that are aligned to 8 bytes: there, places in a piece
// and in the message are the same modulo 8. Penstock delivers one or the other,
// with pieces aligned to 64 bytes, but for tensors that it sends in place: they
// are as aligned as they were at the sender. Stock HTTP/2 aligns nothing.
inline constexpr size_t kPayloadAlignment = 64;

// The largest element size. In bytes.
inline constexpr size_t kPartAlignment = 8;

// The most that a gRPC message can hold: its length prefix has 32 bits.
inline constexpr size_t kMaxMessageBytes = 0xffffffff;

// Encodes the tensors as field 1 of a message, and `header`, unless it is
// empty, as field 2. The result keeps the tensors' memory alive until gRPC has
// sent it. With `checksums`, each tensor has one, for which all its bytes are
// read. Returns INVALID_ARGUMENT for a name that is not UTF-8, and
// RESOURCE_EXHAUSTED above kMaxMessageBytes.
//
// Tensors on devices of kLendAtLeast bytes are referred to where they lie, if
// DeviceMemory::Lend() lends them: then the message has slices that only a
// transport can read, and that nobody may write to until gRPC has sent it. The
// others, and all of them where there are checksums, are first copied to memory
// of DefaultAllocator(), all at once: Bundle::ToHost(), with its errors. Blocks
// until they are there.
absl::StatusOr<grpc::ByteBuffer> Encode(const Bundle& bundle,
                                        absl::string_view header = {},
                                        bool checksums = SendsChecksums());

// Decodes the tensors of `message`, and writes the bytes of its field 2 to
// `header`, unless that is null.
//
// A tensor whose bytes lie in one slice of the message shares its memory. One
// that spans several slices is copied to aligned memory. One that is shorter
// than kCopyBelowBytes is copied, too, if it is not aligned; so only longer
// ones may need Tensor::Aligned(). If the tensors are less than half of a large
// message, all are copied, so that keeping them does not keep the rest of what
// the peer has sent. Copies are on the heap, whatever the default allocator:
// they are for reading, and the peer decides how many there are.
//
// Where a slice lies on a device (DeviceMemory::DeviceOfSlice()), only elements
// of tensors may lie there, and no byte of it is read here. A tensor that lies
// in such a slice is copied to its destination, on the host or on a device, and
// without one, is what `device_tensors` says. It is copied to the host in any
// case if it has a checksum, or is in several slices.
//
// A tensor that has one of `destinations` is copied there instead, once, from
// wherever the message lies, unless a transport has received it there already;
// the bundle's tensor shares that memory. No tensor is left in the destination
// of another. Copies to and from devices are made at the end, all at once: one
// batch to the host, one from there, and one between devices.
//
// Accepts any bytes: returns a bundle, or INVALID_ARGUMENT, which says what is
// wrong and with which tensor, DATA_LOSS if a tensor has a checksum that is not
// that of its bytes, or RESOURCE_EXHAUSTED if there is no memory for a copy,
// or the status of a device. Beside the message, takes memory only in
// proportion to its size.
absl::StatusOr<Bundle> Decode(
    const grpc::ByteBuffer& message, std::string* header = nullptr,
    absl::Span<Destination> destinations = {},
    DeviceTensors device_tensors = DeviceTensors::kToHost);

// Returns whether `text` is valid UTF-8, which protobuf demands of a string.
bool IsUtf8(absl::string_view text);

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_CODEC_H_
