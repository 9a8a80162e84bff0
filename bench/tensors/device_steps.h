// A step's variables on a device: placing and receiving them there, and copying
// them within a process.

#ifndef PENSTOCK_BENCH_TENSORS_DEVICE_STEPS_H_
#define PENSTOCK_BENCH_TENSORS_DEVICE_STEPS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/tensors/report.h"
#include "grpcpp/support/byte_buffer.h"
#include "tensor_service/destination.h"
#include "tensor_service/device.h"
#include "tensor_service/tensor.h"

namespace penstock::bench {

// The value of a request's field 2 that asks the handler to read the bytes back
// and sum them.
inline constexpr char kReadBack[] = "read back";

// Returns copies of the tensors on `device`. Returns the errors of
// DeviceMemory.
absl::StatusOr<tensor::Bundle> OnDevice(const tensor::Bundle& bundle,
                                        const tensor::Device& device);

// Returns the sum (sum.h) of tensors in any memory. Copies tensors on a device
// to the host.
absl::StatusOr<uint64_t> SumAnywhere(const tensor::Bundle& bundle);

// A handler that receives a step's variables into its own device memory. Not
// thread-safe.
class DeviceReceiver {
 public:
  explicit DeviceReceiver(const tensor::Device& device) : device_(device) {}

  struct Received {
    int64_t handed_ns = 0;  // when the tensors were received, in any memory
    int64_t read_ns = 0;    // when the tensors were in the handler's own memory
    uint64_t on_device_bytes = 0;  // bytes that were received in device memory
    bool has_sum = false;
    uint64_t sum = 0;
  };
  // Receives a message. Reuses the last message's memory if the tensors have
  // the same types and shapes. With kReadBack, clears this memory first, and
  // sums the received bytes.
  absl::StatusOr<Received> Receive(const grpc::ByteBuffer& request);

 private:
  absl::Status Prepare(const tensor::Bundle& bundle, bool clear);

  const tensor::Device device_;
  std::vector<tensor::Destination> places_;
};

// A copier of tensors between a device and other memory, in one batch.
class DeviceCopier {
 public:
  // Makes a copier. `to` is a device, or the host with memory of the default
  // allocator. At least one side of the copies must be on a device.
  static absl::StatusOr<DeviceCopier> Make(const tensor::Bundle& variables,
                                           const tensor::Device& to);

  // Copies the variables, and stores the times since `begin_ns` in `step`. Then
  // reads the copies, and returns their sum.
  absl::StatusOr<uint64_t> Run(const tensor::Bundle& variables,
                               int64_t begin_ns, Step* step);

 private:
  tensor::Bundle copies_;
};

}  // namespace penstock::bench

#endif  // PENSTOCK_BENCH_TENSORS_DEVICE_STEPS_H_
