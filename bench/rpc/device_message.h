// Messages whose bytes lie on a device, all but the first word, which is a
// header's place. Who writes one fills memory of the host, which is copied to
// the device, and who reads one copies it back: so the copies are part of what
// is measured, but for a stream that nobody reads.

#ifndef PENSTOCK_BENCH_RPC_DEVICE_MESSAGE_H_
#define PENSTOCK_BENCH_RPC_DEVICE_MESSAGE_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "bench/rpc/buffers.h"
#include "grpcpp/support/byte_buffer.h"
#include "tensor_service/buffer.h"
#include "tensor_service/device.h"

namespace penstock {
namespace bench {

// Makes device messages of this process. It uses memory of the device again, as
// CUDA's allocation waits for the device. Thread-safe.
class DeviceMessages {
 public:
  // Writes one buffer, which begins at the byte `offset` of the message.
  using Write =
      absl::FunctionRef<void(absl::Span<uint8_t> part, size_t offset)>;
  using Read = absl::FunctionRef<void(absl::Span<const uint8_t>)>;

  // tensor::SetDeviceMemory() was called. Lives as long as the process.
  explicit DeviceMessages(const tensor::Device& device);

  // Returns memory on the device with what `write` writes for it.
  absl::StatusOr<std::shared_ptr<tensor::Buffer>> MakeBuffer(size_t size,
                                                             size_t offset,
                                                             Write write);

  // Returns a message of such parts. Returns the errors of DeviceMemory, also
  // if nothing here sends from devices.
  absl::StatusOr<grpc::ByteBuffer> Make(const BufferSizes& parts, Write write);

  // Gives the message's bytes to `read`, in order, wherever they lie.
  absl::Status ReadAll(const grpc::ByteBuffer& message, Read read);

 private:
  class Spares;

  const tensor::Device device_;
  const std::shared_ptr<Spares> spares_;
};

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_DEVICE_MESSAGE_H_
