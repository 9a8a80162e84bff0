// A step's variables on a device: how they get there, are received there, and
// are copied within one process.

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

// Field 2 of a request whose bytes are to be read back and summed.
inline constexpr char kReadBack[] = "read back";

// Returns the tensors on `device`. Returns the errors of DeviceMemory.
absl::StatusOr<tensor::Bundle> OnDevice(const tensor::Bundle& bundle,
                                        const tensor::Device& device);

// Returns the sum (sum.h) of tensors anywhere, which it reads on the host.
absl::StatusOr<uint64_t> SumAnywhere(const tensor::Bundle& bundle);

// What a handler does that wants a step's variables in memory of its own, on a
// device. Not thread-safe.
class DeviceReceiver {
 public:
  explicit DeviceReceiver(const tensor::Device& device) : device_(device) {}

  struct Received {
    int64_t handed_ns = 0;  // when it had the tensors, wherever they were
    int64_t read_ns = 0;    // when they were where it wants them
    uint64_t on_device_bytes = 0;  // that were handed over on a device
    bool has_sum = false;
    uint64_t sum = 0;
  };
  // Receives a message into the memory of the last one, if the tensors are
  // alike. If it says kReadBack, clears that memory before, and sums it after.
  absl::StatusOr<Received> Receive(const grpc::ByteBuffer& request);

 private:
  absl::Status Prepare(const tensor::Bundle& bundle, bool clear);

  const tensor::Device device_;
  std::vector<tensor::Destination> places_;
};

// Copies the tensors to others, in one batch.
class DeviceCopier {
 public:
  // `to` is a device, or the host: then memory of the default allocator. Some
  // of the copies' ends lie on a device.
  static absl::StatusOr<DeviceCopier> Make(const tensor::Bundle& variables,
                                           const tensor::Device& to);

  // Copies, and returns the sum of what was copied, which it reads after all
  // times since `begin_ns` are in `step`.
  absl::StatusOr<uint64_t> Run(const tensor::Bundle& variables,
                               int64_t begin_ns, Step* step);

 private:
  tensor::Bundle copies_;
};

}  // namespace penstock::bench

#endif  // PENSTOCK_BENCH_TENSORS_DEVICE_STEPS_H_
