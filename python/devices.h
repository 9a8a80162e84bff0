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

// Returns the memory of this process's devices, or FAILED_PRECONDITION, with
// the remedy, if there is none. `where` is the device, for error messages.
absl::StatusOr<tensor::DeviceMemory*> NeedDevices(const std::string& where);

// Makes Penstock's transport receive tensors into the program's memory, and
// accept requests on devices. Call it once, from the module.
void UseTransport();

// Returns FAILED_PRECONDITION, with to_host() as the remedy, if the tensor is
// on a device. `operation` names the operation that needs the tensor on the
// host.
absl::Status CheckOnHost(const tensor::Tensor& tensor,
                         const std::string& operation);

// Blocks, without the GIL, until the elements may be read.
absl::Status AwaitReady(const tensor::Tensor& tensor);

// Makes the stream of a DLPack consumer wait until the elements may be read.
// None is CUDA's default stream; -1 is no stream. Throws BufferError for an
// invalid stream of the device.
absl::Status OrderStream(const tensor::Tensor& tensor,
                         const pybind11::object& stream);

// Return a copy on the host, or on the device that a user names.
TensorObject ToHost(const TensorObject& object);
TensorObject ToDevice(const TensorObject& object, const std::string& device);

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_DEVICES_H_
