// Tensors on NVIDIA's GPUs.

#ifndef PENSTOCK_TENSOR_SERVICE_CUDA_CUDA_MEMORY_H_
#define PENSTOCK_TENSOR_SERVICE_CUDA_CUDA_MEMORY_H_

#include <atomic>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "grpcpp/support/slice.h"
#include "tensor_service/device_memory.h"
#include "transport/device/devices.h"
#include "transport/device/process_devices.h"

namespace penstock::tensor {

// Allocates and copies by CUDA's driver; see docs/gpu.md. Devices have the
// numbers that CUDA gives them in this process. A stream is one of the device's
// primary context, as CUDA's runtime and the frameworks make them.
//
//   absl::StatusOr<DeviceMemory*> cuda = CudaMemory::OfProcess();
//   if (cuda.ok()) SetDeviceMemory(*cuda);
class CudaMemory : public DeviceMemory {
 public:
  // Returns the process's, which is never destroyed, and which transports send
  // from, if they can (ServeTransports()). Returns NOT_FOUND, the same each
  // time, on a machine without a driver or a device. Thread-safe.
  static absl::StatusOr<DeviceMemory*> OfProcess();

  // `api` outlives it. For tests; others want OfProcess().
  explicit CudaMemory(device::Api* api);

  // This then lives as long as the process.
  absl::Status ServeTransports() override;

  // Memory of cuMemAlloc(). Freeing it may wait for the device, and for peers
  // to close what was lent to them: keep buffers, and use them again.
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
  absl::StatusOr<bool> HasCome(const DeviceEvent& event) override;

  // Refuses buffers of less than memory::kMinDeviceBytes: to copy those costs
  // less. The first time that it refuses another it logs why, since nobody else
  // hears of it: what is not lent is copied. The slice keeps this busy: it
  // lives no longer.
  absl::StatusOr<grpc::Slice> Lend(std::shared_ptr<Buffer> buffer) override;
  Device DeviceOfSlice(const void* address) const override;

 private:
  absl::StatusOr<device::OpenDevice*> Open(const Device& device);
  absl::Status CheckMayBeLent(const Buffer& buffer);
  void TellOnce(const absl::Status& refused);

  // Looking for a device may open it.
  mutable device::Devices devices_;
  device::ProcessDevices access_{&devices_};
  std::atomic<bool> has_told_{false};
  mutable absl::Mutex mu_;
  absl::Status served_ ABSL_GUARDED_BY(mu_);  // what ServeTransports() said
};

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_CUDA_CUDA_MEMORY_H_
