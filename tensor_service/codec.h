// Encodes bundles of tensors as gRPC messages, and decodes them, without
// copying large tensors.
//
// The bytes are plain protobuf, as tensor.proto defines them. Generated code
// reads the output of Encode(). Decode() reads the output of generated code,
// even if fields are out of order, unknown, repeated or merged. The 2 GiB limit
// of generated code does not apply.

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

// The size below which a tensor is copied next to its header, in bytes. An
// additional slice would cost more than the copy.
inline constexpr size_t kCopyBelowBytes = 1024;

// The size from which a tensor on a device is lent to a transport that can send
// from the device, in bytes. A shorter tensor is copied to the host: the copy
// costs less than a transport needs to reach a device.
inline constexpr size_t kLendAtLeast = 64 << 10;

// The alignment of longer tensors within a message, in bytes. The field
// `padding` produces the alignment:
//
// - A tensor of kCopyBelowBytes or more begins at a multiple of
//   kPayloadAlignment if its size is a multiple of kPartAlignment. Otherwise
//   the tensor ends at a multiple of kPayloadAlignment.
// - A shorter tensor begins at a multiple of its element size.
//
// Therefore the elements of each tensor are aligned if the receiver has the
// message in one piece that is aligned to 8 bytes. They are also aligned if the
// receiver has some longer tensors as separate pieces, and the rest as pieces
// aligned to 8 bytes: offsets in a piece and in the message are then equal
// modulo 8. Penstock delivers one of these two forms, with pieces aligned to 64
// bytes. A tensor that Penstock sends in place keeps the alignment of the
// sender. Stock HTTP/2 aligns nothing.
inline constexpr size_t kPayloadAlignment = 64;

// The largest element size, in bytes.
inline constexpr size_t kPartAlignment = 8;

// The upper bound of a gRPC message: its length prefix has 32 bits.
inline constexpr size_t kMaxMessageBytes = 0xffffffff;

// Encodes the tensors as field 1 of a message. Encodes `header`, unless it is
// empty, as field 2. The result keeps the tensors' memory alive until gRPC has
// sent the message. `checksums` adds a checksum to each tensor, which reads all
// bytes. Returns INVALID_ARGUMENT for a name that is not UTF-8, and
// RESOURCE_EXHAUSTED above kMaxMessageBytes.
//
// Lends tensors of at least kLendAtLeast bytes on devices to the transport, if
// DeviceMemory::Lend() accepts them. The message then has slices that only a
// transport can read, and that nobody may write to until gRPC has sent them.
// Copies other tensors on devices to memory of DefaultAllocator(), in one
// batch, and blocks until the copies are complete. With checksums, copies all
// tensors on devices. Returns the errors of Bundle::ToHost().
absl::StatusOr<grpc::ByteBuffer> Encode(const Bundle& bundle,
                                        absl::string_view header = {},
                                        bool checksums = SendsChecksums());

// Decodes the tensors of `message`, and writes the bytes of its field 2 to
// `header`, unless that is null.
//
// A tensor whose bytes are in one slice of the message shares the slice's
// memory. Decode() copies
//
// - a tensor that spans several slices, to aligned memory;
// - an unaligned tensor that is shorter than kCopyBelowBytes, so only longer
//   tensors may need Tensor::Aligned();
// - all tensors of a large message if they make up less than half of its size.
//   A program that keeps the tensors then does not keep the rest of the
//   message.
//
// Copies are on the heap, not in memory of the default allocator: they are for
// reading, and the peer decides how many there are.
//
// If a slice is on a device (DeviceMemory::DeviceOfSlice()), the slice may
// contain only elements of tensors, and Decode() does not read them. A tensor
// in such a slice is copied to its destination, on the host or on a device.
// Without a destination, `device_tensors` applies. A tensor that has a checksum
// or spans several slices is always copied to the host.
//
// A tensor with a destination is copied there once, unless a transport has
// already received the tensor there. The bundle's tensor shares the
// destination's memory. A tensor that a
// transport received into the destination of another tensor is copied out.
// Copies to and from devices are made at the end, in three batches: to the
// host, from the host, and between devices.
//
// Accepts any bytes. Allocates memory only in proportion to the size of the
// message. Returns
//
// - INVALID_ARGUMENT, with the reason and the tensor, for a malformed message;
// - DATA_LOSS if the checksum of a tensor does not match its bytes;
// - RESOURCE_EXHAUSTED if there is no memory for a copy;
// - the status of a device that fails.
absl::StatusOr<Bundle> Decode(
    const grpc::ByteBuffer& message, std::string* header = nullptr,
    absl::Span<Destination> destinations = {},
    DeviceTensors device_tensors = DeviceTensors::kToHost);

// Returns true if `text` is valid UTF-8, which protobuf requires of a string.
bool IsUtf8(absl::string_view text);

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_CODEC_H_
