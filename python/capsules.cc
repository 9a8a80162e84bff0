#include "python/capsules.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "python/devices.h"
#include "python/errors.h"
#include "python/gil.h"
#include "python/tensor_object.h"
#include "tensor_service/dlpack.h"

namespace penstock::python {
namespace {

namespace py = pybind11;
using tensor::Device;
using tensor::DeviceEvent;
using tensor::Tensor;

constexpr char kName[] = "dltensor";
constexpr char kUsedName[] = "used_dltensor";

// Calls the deleter if the capsule is collected unused.
void DeleteUnlessUsed(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, kName) == 0) return;
  auto* const lent =
      static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, kName));
  lent->deleter(lent);
}

// Wraps a producer's tensor so that any thread may call the deleter. The
// producer's own deleter, which may use Python objects, then runs with the GIL.
DLManagedTensor* WithGil(DLManagedTensor* lent) {
  auto* const outer = new DLManagedTensor(*lent);
  outer->manager_ctx = lent;
  outer->deleter = [](DLManagedTensor* self) {
    auto* const inner = static_cast<DLManagedTensor*>(self->manager_ctx);
    delete self;
    if (inner->deleter == nullptr) return;
    RunLater([inner] { inner->deleter(inner); });
  };
  return outer;
}

absl::Status CheckName(const py::object& capsule) {
  const char* const name = PyCapsule_GetName(capsule.ptr());
  if (name == nullptr) PyErr_Clear();
  if (name != nullptr && strcmp(name, kName) == 0) return absl::OkStatus();
  if (name != nullptr && strcmp(name, kUsedName) == 0) {
    return absl::InvalidArgumentError(
        "the DLPack capsule was used before, and can be used once only: give "
        "the array itself, or call its __dlpack__() again");
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "a DLPack capsule is named ", kName, ", and this one ",
      name == nullptr ? "has no name" : name,
      ": give the array itself, or what its __dlpack__() returns without "
      "arguments"));
}

// Returns the event after which the elements may be read, or null if there is
// no need to wait.
absl::StatusOr<std::shared_ptr<const DeviceEvent>> ReadyOf(
    const DLManagedTensor& lent) {
  std::shared_ptr<const DeviceEvent> at_once;
  // Ignores an unsupported device, which FromDLPack() reports.
  auto device = tensor::DeviceFromDLPack(lent.dl_tensor.device);
  if (!device.ok() || device->is_host()) return at_once;
  auto memory = NeedDevices(device->ToString());
  if (!memory.ok()) return memory.status();
  Unlocked unlocked;
  return (*memory)->Record(*device, tensor::Stream::Legacy());
}

// Returns a tensor that borrows the memory of `lent`. On an error, leaves
// `lent` to its producer, who must still delete it.
absl::StatusOr<Tensor> Borrow(DLManagedTensor* lent) {
  auto ready = ReadyOf(*lent);
  if (!ready.ok()) return ready.status();
  DLManagedTensor* const outer = WithGil(lent);
  absl::StatusOr<Tensor> tensor = [outer, &ready] {
    Unlocked unlocked;
    return tensor::FromDLPack(outer, Pool(), *std::move(ready));
  }();
  if (!tensor.ok()) delete outer;
  return tensor;
}

absl::StatusOr<Tensor> Consume(const py::object& capsule) {
  absl::Status status = CheckName(capsule);
  if (!status.ok()) return status;
  auto* const lent =
      static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), kName));
  // Renames the capsule before other threads can run; they run during device
  // queries and copies. If two threads use one capsule, the second thread is
  // then refused.
  PyCapsule_SetName(capsule.ptr(), kUsedName);
  absl::StatusOr<Tensor> tensor = Borrow(lent);
  if (!tensor.ok()) PyCapsule_SetName(capsule.ptr(), kName);
  RunPending();
  return tensor;
}

// Returns the attribute, or INVALID_ARGUMENT if it is not callable.
absl::StatusOr<py::function> FunctionOf(const py::object& source,
                                        const char* name) {
  const py::object function = source.attr(name);
  if (PyCallable_Check(function.ptr()) != 0) {
    return py::reinterpret_borrow<py::function>(function);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(name, " of an object of type ",
                   TextOf(py::type::of(source).attr("__name__")),
                   " is no function: give a numpy array or a tensor of "
                   "PyTorch"));
}

// Returns a number from DLPack, or nothing.
absl::optional<int32_t> NumberOf(py::handle number) {
  if (PyIndex_Check(number.ptr()) == 0) return absl::nullopt;
  const Py_ssize_t value = PyNumber_AsSsize_t(number.ptr(), nullptr);
  if (value == -1 && PyErr_Occurred() != nullptr) throw py::error_already_set();
  if (value < INT32_MIN || value > INT32_MAX) return absl::nullopt;
  return static_cast<int32_t>(value);
}

absl::StatusOr<DLDevice> ReadDevice(const py::object& pair) {
  const bool is_pair =
      (py::isinstance<py::tuple>(pair) || py::isinstance<py::list>(pair)) &&
      py::len(pair) == 2;
  const py::tuple numbers = is_pair ? py::tuple(pair) : py::tuple();
  const auto type = is_pair ? NumberOf(numbers[0]) : absl::nullopt;
  const auto id = is_pair ? NumberOf(numbers[1]) : absl::nullopt;
  if (type && id) return DLDevice{static_cast<DLDeviceType>(*type), *id};
  return absl::InvalidArgumentError(absl::StrCat(
      "__dlpack_device__() has returned ", TextOf(py::repr(pair)),
      ", which is no pair of a device's type and its number, such as (1, 0)"));
}

// Queries the device before the program requests the array, because that
// request may wait for the device, or fail.
absl::StatusOr<Device> DeviceOf(const py::object& source) {
  if (!py::hasattr(source, "__dlpack_device__")) return Device();
  const auto function = FunctionOf(source, "__dlpack_device__");
  if (!function.ok()) return function.status();
  const absl::StatusOr<DLDevice> read = ReadDevice((*function)());
  if (!read.ok()) return read.status();
  auto device = tensor::DeviceFromDLPack(*read);
  if (!device.ok() || device->is_host()) return device;
  auto memory = NeedDevices(device->ToString());
  if (!memory.ok()) return memory.status();
  return device;
}

}  // namespace

absl::StatusOr<py::capsule> ToCapsule(const Tensor& tensor) {
  absl::StatusOr<DLManagedTensor*> lent = tensor::ToDLPack(tensor);
  if (!lent.ok()) return lent.status();
  PyObject* const capsule = PyCapsule_New(*lent, kName, DeleteUnlessUsed);
  if (capsule == nullptr) {
    (*lent)->deleter(*lent);
    throw py::error_already_set();
  }
  return py::reinterpret_steal<py::capsule>(capsule);
}

absl::StatusOr<Tensor> FromCapsule(const py::object& source) {
  if (PyCapsule_CheckExact(source.ptr()) != 0) return Consume(source);
  if (!py::hasattr(source, "__dlpack__")) {
    return absl::InvalidArgumentError(absl::StrCat(
        "an object of type ", TextOf(py::type::of(source).attr("__name__")),
        " has no __dlpack__: give a numpy array or a tensor of PyTorch"));
  }
  const absl::StatusOr<Device> device = DeviceOf(source);
  if (!device.ok()) return device.status();
  const auto function = FunctionOf(source, "__dlpack__");
  if (!function.ok()) return function.status();
  const py::object capsule =
      device->is_host() ? (*function)() : (*function)(py::arg("stream") = 1);
  if (PyCapsule_CheckExact(capsule.ptr()) == 0) {
    return absl::InvalidArgumentError("__dlpack__() has returned no capsule");
  }
  return Consume(capsule);
}

}  // namespace penstock::python
