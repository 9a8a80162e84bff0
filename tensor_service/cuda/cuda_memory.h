// Tensors on NVIDIA's GPUs.

#ifndef PENSTOCK_TENSOR_SERVICE_CUDA_CUDA_MEMORY_H_
#define PENSTOCK_TENSOR_SERVICE_CUDA_CUDA_MEMORY_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tensor_service/device_memory.h"
#include "transport/device/devices.h"

namespace penstock::tensor {

// Allocates and copies by CUDA's driver; see docs/gpu.md. Devices have the
// numbers that CUDA gives them in this process. A stream is one of the device's
// primary context, as CUDA's runtime and the frameworks make them.
//
//   absl::StatusOr<DeviceMemory*> cuda = CudaMemory::OfProcess();
//   if (cuda.ok()) SetDeviceMemory(*cuda);
class CudaMemory : public DeviceMemory {
 public:
  // Returns the process's, which is never destroyed. Returns NOT_FOUND, the
  // same each time, on a machine without a driver or a device. Thread-safe.
  static absl::StatusOr<DeviceMemory*> OfProcess();

  // `api` outlives it. For tests; others want OfProcess().
  explicit CudaMemory(device::Api* api);

  // Memory of cuMemAlloc(). Freeing it may wait for the device: keep buffers,
  // and use them again.
  absl::StatusOr<std::shared_ptr<Buffer>> Allocate(const Device& device,
                                                   size_t bytes) override;

  absl::StatusOr<Device> DeviceOf(uintptr_t address) override;

  // One device's copies are one batch; those of several devices are made one
  // after the other.
  absl::Status Copy(absl::Span<const CopyToHost> copies) override;
  absl::Status Copy(absl::Span<const CopyFromHost> copies) override;
  absl::Status Copy(absl::Span<const CopyOnDevice> copies) override;

  absl::StatusOr<std::shared_ptr<const DeviceEvent>> Record(
      const Device& device, Stream stream) override;
  absl::Status Order(const DeviceEvent& event, const Device& device,
                     Stream stream) override;
  absl::Status Await(const DeviceEvent& event) override;

 private:
  absl::StatusOr<device::OpenDevice*> Open(const Device& device);

  device::Devices devices_;
};

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_CUDA_CUDA_MEMORY_H_
