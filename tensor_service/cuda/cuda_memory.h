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

// Allocates and copies by CUDA's driver; see docs/gpu.md. Devices have CUDA's
// numbers for this process. A stream belongs to the device's primary context,
// like the streams of CUDA's runtime and of the frameworks.
//
//   absl::StatusOr<DeviceMemory*> cuda = CudaMemory::OfProcess();
//   if (cuda.ok()) SetDeviceMemory(*cuda);
class CudaMemory : public DeviceMemory {
 public:
  // Returns the object of this process, which is never destroyed. Transports
  // that can send from devices use it (ServeTransports()). Returns NOT_FOUND,
  // on every call, on a machine without a driver or a device. Thread-safe.
  static absl::StatusOr<DeviceMemory*> OfProcess();

  // Makes an object for tests; other code uses OfProcess(). `api` must outlive
  // this object.
  explicit CudaMemory(device::Api* api);

  // Implements DeviceMemory. After this call, the object must live as long as
  // the process.
  absl::Status ServeTransports() override;

  // Allocates memory by cuMemAlloc(). Freeing such memory may wait for the
  // device, and for peers to close lent memory: keep and reuse buffers.
  absl::StatusOr<std::shared_ptr<Buffer>> Allocate(const Device& device,
                                                   size_t bytes) override;

  absl::StatusOr<Device> DeviceOf(uintptr_t address) override;

  // Copies in one batch per device, one device after another.
  absl::Status Copy(absl::Span<const CopyToHost> copies) override;
  absl::Status Copy(absl::Span<const CopyFromHost> copies) override;
  absl::Status Copy(absl::Span<const CopyOnDevice> copies) override;

  absl::StatusOr<std::shared_ptr<const DeviceEvent>> Record(
      const Device& device, Stream stream) override;
  absl::Status Order(const DeviceEvent& event, const Device& device,
                     Stream stream) override;
  absl::Status Await(const DeviceEvent& event) override;
  absl::StatusOr<bool> HasCompleted(const DeviceEvent& event) override;

  // Fails for buffers of less than memory::kMinDeviceBytes, because copying
  // them costs less. Logs the first refusal for another reason, which would
  // otherwise remain unnoticed: a refused buffer is copied. This object must
  // outlive the slice.
  absl::StatusOr<grpc::Slice> Lend(std::shared_ptr<Buffer> buffer) override;
  Device DeviceOfSlice(const void* address) const override;

 private:
  absl::StatusOr<device::OpenDevice*> Open(const Device& device);
  absl::Status CheckMayBeLent(const Buffer& buffer);
  void TellOnce(const absl::Status& refused);

  // The open devices. Mutable, because a query may open a device.
  mutable device::Devices devices_;
  device::ProcessDevices access_{&devices_};
  std::atomic<bool> has_told_{false};
  mutable absl::Mutex mu_;
  absl::Status served_ ABSL_GUARDED_BY(mu_);  // the result of ServeTransports()
};

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_CUDA_CUDA_MEMORY_H_
