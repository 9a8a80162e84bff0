// Messages whose bytes are on a device, except the first word, which represents
// a header. The writer fills host memory, which is copied to the device, and
// the reader copies the bytes back. The measurement therefore includes these
// copies, except in a stream that nobody reads.

#ifndef PENSTOCK_BENCH_RPC_MESSAGE_DEVICE_MESSAGE_H_
#define PENSTOCK_BENCH_RPC_MESSAGE_DEVICE_MESSAGE_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "bench/rpc/message/buffers.h"
#include "grpcpp/support/byte_buffer.h"
#include "tensor_service/buffer.h"
#include "tensor_service/device.h"

namespace penstock {
namespace bench {

// Makes device messages of this process. Reuses device memory, because CUDA's
// allocation waits for the device. Thread-safe.
class DeviceMessages {
 public:
  // A function that writes one buffer, which begins at byte `offset` of the
  // message.
  using Write =
      absl::FunctionRef<void(absl::Span<uint8_t> part, size_t offset)>;
  using Read = absl::FunctionRef<void(absl::Span<const uint8_t>)>;

  // Call tensor::SetDeviceMemory() first. The object must live as long as the
  // process.
  explicit DeviceMessages(const tensor::Device& device);

  // Returns device memory that contains the output of `write`.
  absl::StatusOr<std::shared_ptr<tensor::Buffer>> MakeBuffer(size_t size,
                                                             size_t offset,
                                                             Write write);

  // Returns a message whose buffers have the sizes `parts`. Returns the errors
  // of DeviceMemory, for example if no transport of this process sends from
  // devices.
  absl::StatusOr<grpc::ByteBuffer> Make(const BufferSizes& parts, Write write);

  // Passes the message's bytes to `read`, in order. Copies bytes on the device
  // to the host.
  absl::Status ReadAll(const grpc::ByteBuffer& message, Read read);

 private:
  class Spares;

  const tensor::Device device_;
  const std::shared_ptr<Spares> spares_;
};

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_MESSAGE_DEVICE_MESSAGE_H_
