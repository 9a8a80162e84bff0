// Lends tensors to other libraries, and borrows theirs, by DLPack. NumPy,
// PyTorch, JAX and others use DLPack to exchange arrays without a copy.

#ifndef PENSTOCK_TENSOR_SERVICE_DLPACK_H_
#define PENSTOCK_TENSOR_SERVICE_DLPACK_H_

#include <dlpack/dlpack.h>

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "tensor_service/allocator.h"
#include "tensor_service/device.h"
#include "tensor_service/device_stream.h"
#include "tensor_service/tensor.h"

namespace penstock::tensor {

// DLPack's code for an 8-bit bool, which the header of DLPack 0.6 in Debian 12
// lacks.
inline constexpr uint8_t kDLBoolCode = 6;

// Lends the memory of `tensor` to a consumer. The consumer owns the result and
// calls its deleter exactly once, on any thread. The result holds the buffer:
// the memory stays valid until the deleter runs, and a Tensor copies the memory
// before writing.
//
// The consumer must not write to the memory, but DLPack 0.6 cannot express
// this. The memory may belong to a call in progress, or to a peer that shares
// it read-only. For a consumer that writes, lend tensor.Copy() and drop the
// original.
//
// Copies only unaligned elements, like Tensor::Aligned() and with the same
// errors. Elements on a device are lent in place, with the device's number.
// Before the consumer uses them, its stream must wait for ready() of the
// tensor's buffer, by DeviceMemory::Order().
absl::StatusOr<DLManagedTensor*> ToDLPack(const Tensor& tensor);

// Borrows the memory of a producer.
//
// On success, this function owns `managed`. The deleter, unless null, runs
// exactly once, on the thread of the memory's last holder, which may be one of
// gRPC's. On an error, `managed` is unchanged and remains the caller's, who
// must still call the deleter.
//
// Copies nothing if the elements are in row-major order without gaps. Packs any
// other layout, including negative and zero strides, into memory of
// `allocator`, and calls the deleter before returning. A null `allocator`
// selects DefaultAllocator().
//
// CUDA memory becomes a tensor on that device. The tensor may be used once the
// event `ready` has completed, or immediately if `ready` is null. CUDA's
// managed memory counts as device memory: on some machines the CPU cannot read
// it while a kernel runs, and nothing would make the CPU wait. Pinned host
// memory becomes a tensor on the host. For pinned memory, this function blocks
// until `ready` has completed, by GetDeviceMemory().
//
// Borrowed memory is read-only: the producer may also use it, so a Tensor
// copies it before writing. If the producer writes while the memory is being
// sent, the peer gets a mixture of old and new bytes.
//
// Does not check that the memory exists. Returns INVALID_ARGUMENT, with the
// remedy, for
//
// - memory of an unsupported device;
// - a layout with gaps on a device;
// - an element type that DType lacks;
// - an invalid tensor.
//
// Returns RESOURCE_EXHAUSTED if there is no memory for a copy.
absl::StatusOr<Tensor> FromDLPack(
    DLManagedTensor* managed, Allocator* allocator = nullptr,
    std::shared_ptr<const DeviceEvent> ready = nullptr);

// Returns DLPack's name for the device of `tensor`.
DLDevice DLPackDeviceOf(const Tensor& tensor);

// Returns the Device that FromDLPack() uses for memory of `device`. Returns
// INVALID_ARGUMENT, with the remedy, for a device that FromDLPack() does not
// support.
absl::StatusOr<Device> DeviceFromDLPack(const DLDevice& device);

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_DLPACK_H_
