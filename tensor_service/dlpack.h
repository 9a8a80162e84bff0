// Lends tensors to other libraries, and borrows theirs, by DLPack: NumPy,
// PyTorch, JAX and others exchange arrays by it without a copy.

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

// DLPack's code of a bool, which has 8 bits. Debian 12's header has DLPack 0.6,
// which lacks it.
inline constexpr uint8_t kDLBoolCode = 6;

// Lends the memory of `tensor` to a consumer, who owns the result and calls its
// deleter exactly once, on any thread. The result is a holder like any other:
// the memory stays valid until then, and a Tensor copies it before writing.
//
// The consumer must not write to it. DLPack 0.6 cannot tell him so. The memory
// may be that of a call under way, or what a peer lends: pages that cannot be
// written to. To have a consumer write, lend tensor.Copy() and drop it.
//
// Copies nothing, unless the elements are not aligned; then as
// Tensor::Aligned(), with its errors. Those on a device are lent as they are,
// with the device's number. Before the consumer touches them, his stream has to
// come after ready() of the tensor's buffer: DeviceMemory::Order().
absl::StatusOr<DLManagedTensor*> ToDLPack(const Tensor& tensor);

// Borrows the memory of a producer.
//
// On success `managed` belongs to this function: its deleter, unless that is
// null, runs exactly once, on the thread of the last holder of the memory,
// which may be one of gRPC's. On an error `managed` is untouched, and remains
// the caller's, who still has to call the deleter.
//
// Copies nothing if the elements lie in row-major order without gaps. Packs any
// other layout into memory of `allocator` (null is DefaultAllocator()), and
// calls the deleter before it returns. Negative and zero strides are such
// layouts.
//
// CUDA's memory gives a tensor on that device, which may be touched once
// `ready` has come; null: at once. That which CUDA manages counts as the
// device's, though the CPU could read it: not while a kernel runs, on some
// machines, and nothing would tell it to wait. Host memory that CUDA has pinned
// is the host's; this waits for `ready` itself, by GetDeviceMemory().
//
// Borrowed memory is read-only: the producer may use it too, so a Tensor copies
// it before writing. If the producer writes to it while it is being sent, the
// peer gets some of both.
//
// Returns INVALID_ARGUMENT, which names the remedy, for memory of other
// devices, for a layout with gaps on a device, an element type that DType
// lacks, and anything that is no valid tensor. It cannot tell whether the
// memory is there. Returns RESOURCE_EXHAUSTED if there is no memory for a copy.
absl::StatusOr<Tensor> FromDLPack(
    DLManagedTensor* managed, Allocator* allocator = nullptr,
    std::shared_ptr<const DeviceEvent> ready = nullptr);

// Returns what DLPack calls the device of `tensor`.
DLDevice DLPackDeviceOf(const Tensor& tensor);

// Returns whose memory FromDLPack() takes that of `device` for. Returns
// INVALID_ARGUMENT, with the remedy, if it does not take it.
absl::StatusOr<Device> DeviceFromDLPack(const DLDevice& device);

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_DLPACK_H_
