// Operands in the memory of NVIDIA's GPUs.

#ifndef PENSTOCK_COLLECTIVES_CUDA_CUDA_OPERANDS_H_
#define PENSTOCK_COLLECTIVES_CUDA_CUDA_OPERANDS_H_

#include <cstddef>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "collectives/operand_memory.h"
#include "collectives/reduction/reduction.h"
#include "tensor_service/dtype.h"
#include "transport/base/mutex.h"
#include "transport/device/devices.h"
#include "transport/device/handles.h"
#include "transport/device/reducer.h"

namespace penstock::collectives {

// The memory of one GPU. The GPU itself computes sums of f32, f16 and bf16
// whose addresses are aligned to an element. All other reductions, and
// divisions, are copied to the host, computed there, and copied back. Results
// are bit-equal in both cases, except for the payload of NaN.
//
// The program's own work on operands must have ended when it calls an
// operation.
class CudaOperands final : public OperandMemory {
 public:
  // Opens GPU number `ordinal`. `devices` must outlive this object. If the
  // library was built without CUDA's compiler, all reductions are computed on
  // the host.
  static absl::StatusOr<std::unique_ptr<CudaOperands>> Open(
      device::Devices* devices, int ordinal);

  absl::StatusOr<bool> Has(const void* address) const override;
  absl::Status CopyToHost(const void* from, void* to, size_t bytes) override;
  absl::Status CopyFromHost(const void* from, void* to, size_t bytes) override;
  absl::Status Copy(const void* from, void* to, size_t bytes) override;
  absl::Status Reduce(ReduceOp op, tensor::DType dtype, const void* received,
                      bool is_right, void* data, size_t count) override;
  absl::Status Divide(tensor::DType dtype, void* data, int by,
                      size_t count) override;

 private:
  CudaOperands(device::Devices* devices, int ordinal,
               device::OpenDevice* opened,
               std::unique_ptr<device::Reducer> reducer)
      : devices_(devices),
        ordinal_(ordinal),
        opened_(opened),
        reducer_(std::move(reducer)) {}

  bool CanReduce(ReduceOp op, tensor::DType dtype, const void* data) const;
  absl::Status ReduceHere(tensor::DType dtype, const void* received,
                          bool is_right, void* data, size_t count);
  // Makes the stream, and room for `bytes` received bytes.
  absl::Status Prepare(size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  device::Devices* const devices_;
  const int ordinal_;
  device::OpenDevice* const opened_;
  const std::unique_ptr<device::Reducer> reducer_;  // null: none was built
  base::Mutex mu_;
  // The received elements of the reduction that is running, on the device.
  device::DeviceBlock scratch_ ABSL_GUARDED_BY(mu_);
  size_t scratch_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  device::Stream stream_ ABSL_GUARDED_BY(mu_);
  device::Event done_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::collectives

#endif  // PENSTOCK_COLLECTIVES_CUDA_CUDA_OPERANDS_H_
