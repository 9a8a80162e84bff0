#include "python/capsules.h"

#include <cstring>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "python/errors.h"
#include "python/gil.h"
#include "python/tensor_object.h"
#include "tensor_service/dlpack.h"

namespace penstock::python {
namespace {

namespace py = pybind11;
using tensor::Tensor;

constexpr char kName[] = "dltensor";
constexpr char kUsedName[] = "used_dltensor";

// Runs when the capsule is collected.
void DeleteUnlessUsed(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, kName) == 0) return;
  auto* const lent =
      static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, kName));
  lent->deleter(lent);
}

// What a producer has lent, with a deleter that any thread may call: it has the
// producer's, which may touch Python's objects, run with the GIL.
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

absl::StatusOr<Tensor> Consume(const py::object& capsule) {
  absl::Status status = CheckName(capsule);
  if (!status.ok()) return status;
  auto* const lent =
      static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), kName));
  // At first, since other threads run while elements are copied.
  PyCapsule_SetName(capsule.ptr(), kUsedName);
  DLManagedTensor* const outer = WithGil(lent);
  absl::StatusOr<Tensor> tensor = [outer] {
    Unlocked unlocked;
    return tensor::FromDLPack(outer, Pool());
  }();
  if (!tensor.ok()) {
    delete outer;
    PyCapsule_SetName(capsule.ptr(), kName);
  }
  RunPending();
  return tensor;
}

// Asks for the device first: a producer may wait for its device, or fail, when
// it is asked for the array.
absl::Status CheckDevice(const py::object& source) {
  if (!py::hasattr(source, "__dlpack_device__")) return absl::OkStatus();
  const auto device = source.attr("__dlpack_device__")().cast<py::sequence>();
  const int type = py::int_(device[0]).cast<int>();
  if (type == kDLCPU || type == kDLCUDAHost || type == kDLROCMHost) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the array is on device ", TextOf(device),
      " (DLPack's numbers), and Penstock sends from the CPU's memory: copy it "
      "there first, in PyTorch by tensor.cpu()"));
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
  absl::Status status = CheckDevice(source);
  if (!status.ok()) return status;
  const py::object capsule = source.attr("__dlpack__")();
  if (PyCapsule_CheckExact(capsule.ptr()) == 0) {
    return absl::InvalidArgumentError("__dlpack__() has returned no capsule");
  }
  return Consume(capsule);
}

}  // namespace penstock::python
