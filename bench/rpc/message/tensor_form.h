// Messages of tensors, and messages on a device. bench/current_grpc has another
// implementation, because current gRPC carries no device memory.

#ifndef PENSTOCK_BENCH_RPC_MESSAGE_TENSOR_FORM_H_
#define PENSTOCK_BENCH_RPC_MESSAGE_TENSOR_FORM_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "bench/rpc/message/buffers.h"
#include "grpcpp/support/byte_buffer.h"
#include "tensor_service/device.h"

namespace penstock {
namespace bench {

// Reads one piece of a message.
using ReadPart = absl::FunctionRef<void(absl::Span<const uint8_t>)>;

// Returns OK if this build has messages of tensors.
absl::Status CheckTensorForm();

// Makes all later tensors in Penstock's pool.
void PutTensorsIntoPool();

// Makes a message of one new tensor per buffer, on the device if
// SetMessagesOnDevice() was called. Returns the errors of the allocator.
absl::StatusOr<grpc::ByteBuffer> MakeTensors(const BufferSizes& parts,
                                             WritePart write);
// Passes the bytes of a message of tensors to `read`. Returns DATA_LOSS for a
// malformed message.
absl::Status ReadTensors(const grpc::ByteBuffer& message, ReadPart read);

// Makes all later messages on the device, except protobuf messages. Call
// UseDevice() of devices.h first.
void SetMessagesOnDevice(const tensor::Device& device);
bool MessagesAreOnDevice();

// Make and read a raw message on the device. Only if MessagesAreOnDevice().
absl::StatusOr<grpc::ByteBuffer> MakeOnDevice(const BufferSizes& parts,
                                              WritePart write);
absl::Status ReadFromDevice(const grpc::ByteBuffer& message, ReadPart read);

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_MESSAGE_TENSOR_FORM_H_
