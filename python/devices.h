// Tensors on devices, for Python.

#ifndef PENSTOCK_PYTHON_DEVICES_H_
#define PENSTOCK_PYTHON_DEVICES_H_

#include <pybind11/pybind11.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "python/tensor_object.h"
#include "tensor_service/device_memory.h"
#include "tensor_service/tensor.h"

namespace penstock::python {

// Returns what copies to and from devices, or FAILED_PRECONDITION, with the
// remedy, if this process has none. `where` is the device, for people.
absl::StatusOr<tensor::DeviceMemory*> NeedDevices(const std::string& where);

// Has tensors received into memory of the program's, and requests on devices
// accepted, by Penstock's transport. Call it once, from the module.
void UseTransport();

// Returns FAILED_PRECONDITION, which names to_host(), if the tensor lies on a
// device. `operation` is what needs it on the host.
absl::Status CheckOnHost(const tensor::Tensor& tensor,
                         const std::string& operation);

// Waits, Unlocked, until the elements may be read.
absl::Status AwaitReady(const tensor::Tensor& tensor);

// Has the stream of the device that a consumer of DLPack names wait until the
// elements may be read. None is CUDA's default stream, and -1 none. Throws
// BufferError for what is no stream of that device's.
absl::Status OrderStream(const tensor::Tensor& tensor,
                         const pybind11::object& stream);

// Return a copy on the host or on the device that a user names.
TensorObject ToHost(const TensorObject& object);
TensorObject ToDevice(const TensorObject& object, const std::string& device);

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_DEVICES_H_
