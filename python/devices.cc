#include "python/devices.h"

#include <cstdint>
#include <memory>

#include "absl/strings/str_cat.h"
#include "penstock/destinations.h"
#include "penstock/device_slices.h"
#include "python/bindings.h"
#include "python/errors.h"
#include "python/gil.h"
#include "tensor_service/cuda/cuda_memory.h"
#include "tensor_service/direct_receive.h"

namespace penstock::python {

namespace py = pybind11;
using tensor::Device;
using tensor::DeviceMemory;
using tensor::Stream;
using tensor::Tensor;

absl::StatusOr<DeviceMemory*> NeedDevices(const std::string& where) {
  if (DeviceMemory* const memory = tensor::GetDeviceMemory()) return memory;
  // Loads CUDA on first use instead of at import, because programs without
  // arrays on a GPU need no driver.
  absl::StatusOr<DeviceMemory*> cuda = tensor::CudaMemory::OfProcess();
  if (cuda.ok()) {
    tensor::SetDeviceMemory(*cuda);
    return cuda;
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "memory of ", where, ": penstock has found no driver of such devices in ",
      "this process; keep arrays in the CPU's memory, in PyTorch by ",
      "tensor.cpu() (", cuda.status().message(), ")"));
}

void UseTransport() {
  tensor::SetDirectReceiver(
      tensor::DirectReceiverBy<penstock::Destinations>(&AcceptDeviceSlices));
}

absl::Status CheckOnHost(const Tensor& tensor, const std::string& operation) {
  if (tensor.device().is_host()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      operation,
      " needs the elements in the CPU's memory, and penstock.Tensor(",
      tensor.ToString(), ") lies on ", tensor.device().ToString(),
      ": call its to_host() first"));
}

absl::Status AwaitReady(const Tensor& tensor) {
  const auto ready =
      tensor.buffer() == nullptr ? nullptr : tensor.buffer()->ready();
  if (ready == nullptr) return absl::OkStatus();
  absl::StatusOr<DeviceMemory*> memory =
      NeedDevices(tensor.device().ToString());
  if (!memory.ok()) return memory.status();
  Unlocked unlocked;
  return (*memory)->Await(*ready);
}

absl::Status OrderStream(const Tensor& tensor, const py::object& stream) {
  const bool is_number = py::isinstance<py::int_>(stream);
  if (!stream.is_none() && !is_number) {
    throw py::buffer_error(absl::StrCat("stream is ", TextOf(stream),
                                        ": give the number of a CUDA stream"));
  }
  const int64_t number = is_number ? stream.cast<int64_t>() : 1;
  if (number == -1) return absl::OkStatus();
  if (number == 0) {
    throw py::buffer_error(
        "stream 0 is none: give 1 for CUDA's legacy default stream, or 2 for "
        "the thread's own");
  }
  const auto ready =
      tensor.buffer() == nullptr ? nullptr : tensor.buffer()->ready();
  if (ready == nullptr) return absl::OkStatus();
  const Device device = tensor.device();
  absl::StatusOr<DeviceMemory*> memory = NeedDevices(device.ToString());
  if (!memory.ok()) return memory.status();
  Unlocked unlocked;
  return (*memory)->Order(*ready, device,
                          Stream{static_cast<uintptr_t>(number)});
}

TensorObject ToHost(const TensorObject& object) {
  // Holds the tensor, because another thread may replace the object's memory.
  const std::shared_ptr<const Tensor> tensor = object.Share();
  return TensorObject(ValueOf([&tensor] {
    Unlocked unlocked;
    return tensor->ToHost(Pool());
  }()));
}

TensorObject ToDevice(const TensorObject& object, const std::string& device) {
  const Device there = ValueOf(tensor::ParseDevice(device));
  if (there.is_host()) return ToHost(object);
  ValueOf(NeedDevices(device));
  const std::shared_ptr<const Tensor> tensor = object.Share();
  return TensorObject(ValueOf([&tensor, &there] {
    Unlocked unlocked;
    return tensor->ToDevice(there);
  }()));
}

namespace {

void UseDevices() {
  DeviceMemory* const memory = ValueOf(NeedDevices("GPUs"));
  const absl::Status served = [memory] {
    Unlocked unlocked;
    return memory->ServeTransports();
  }();
  if (served.ok()) return;
  Throw(absl::Status(
      served.code(),
      absl::StrCat(
          "tensors on GPUs go by way of the CPU's memory: ", served.message(),
          "; call use_devices() before the first client or server")));
}

}  // namespace

void BindDevices(py::module_& module) {
  module.def(
      "use_devices", &UseDevices,
      R"(Sends and receives this process's GPU tensors directly on the GPUs.

Call use_devices() before making the first client or server. Tensors to and from
a process that has not called it go by way of the CPU's memory. Raises
FailedPrecondition if there is no driver, or if the call is too late. All GPU
tensors then go by way of the CPU's memory.)");
}

}  // namespace penstock::python
