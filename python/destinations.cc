#include "python/destinations.h"

#include <pybind11/numpy.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "python/errors.h"
#include "python/from_any.h"
#include "python/gil.h"
#include "python/tensor_object.h"
#include "tensor_service/buffer.h"

namespace penstock::python {
namespace {

namespace py = pybind11;
using tensor::Buffer;
using tensor::Destination;
using tensor::DType;
using tensor::Tensor;

[[noreturn]] void Refuse(const std::string& name, absl::string_view why) {
  Throw(absl::InvalidArgumentError(
      absl::StrCat("into[", TextOf(py::repr(py::str(name))), "]: ", why)));
}

// Returns true if FromAny() has shared the program's memory: shared memory is
// read-only, and a copy is writable.
bool IsBorrowed(const Tensor& tensor) {
  return tensor.byte_size() == 0 || !tensor.buffer()->writable();
}

bool IsReadOnlyOnDevice(const py::object& source) {
  if (!py::hasattr(source, "__cuda_array_interface__")) return false;
  const py::dict interface = source.attr("__cuda_array_interface__");
  return interface.contains("data") &&
         py::object(interface["data"].cast<py::tuple>()[1]).cast<bool>();
}

void CheckWritable(const std::string& name, const py::object& source,
                   const Tensor& tensor) {
  const bool is_writable =
      py::isinstance<py::array>(source)
          ? py::reinterpret_borrow<py::array>(source).writeable()
          : py::hasattr(source, "__dlpack__") || !IsReadOnlyOnDevice(source);
  if (is_writable && IsBorrowed(tensor)) return;
  Refuse(name,
         "the array cannot be written to in place: it must be "
         "writeable, in row-major order without gaps, aligned and of native "
         "byte order");
}

// Returns a writable tensor of the same memory.
Tensor Writable(const Tensor& tensor) {
  if (tensor.byte_size() == 0) return tensor;
  const std::shared_ptr<Buffer>& buffer = tensor.buffer();
  auto held = [tensor] {};
  auto writable =
      buffer->device().is_host()
          ? Buffer::Wrap(const_cast<char*>(buffer->data()), buffer->size(),
                         /*writable=*/true, std::move(held))
          : Buffer::WrapDevice(buffer->device(), buffer->device_address(),
                               buffer->size(), /*writable=*/true,
                               std::move(held), buffer->ready());
  return ValueOf(
      Tensor::FromBuffer(tensor.dtype(), tensor.shape(), std::move(writable)));
}

void NormaliseBools(const Tensor& tensor) {
  if (tensor.dtype() != DType::kBool || !tensor.device().is_host()) return;
  char* const bytes =
      tensor.byte_size() > 0 ? tensor.buffer()->mutable_data() : nullptr;
  for (size_t i = 0; i < tensor.byte_size(); ++i) {
    bytes[i] = static_cast<char>(bytes[i] != 0);
  }
}

}  // namespace

Destinations::Destinations(const py::object& into) {
  if (into.is_none()) return;
  if (!py::isinstance<py::dict>(into)) {
    throw py::type_error("into is a dict: {\"x\": array}");
  }
  for (const auto& [key, value] : py::reinterpret_borrow<py::dict>(into)) {
    if (!py::isinstance<py::str>(key)) {
      throw py::type_error("the name of a tensor is a str");
    }
    const auto name = key.cast<std::string>();
    Tensor memory = MemoryOf(name, py::reinterpret_borrow<py::object>(value));
    destinations_.emplace_back(name, std::move(memory));
  }
}

Tensor Destinations::MemoryOf(const std::string& name,
                              const py::object& source) {
  if (py::isinstance<TensorObject>(source)) return MemoryOfTensor(name, source);
  const bool is_memory = py::isinstance<py::array>(source) ||
                         py::hasattr(source, "__dlpack__") ||
                         py::hasattr(source, "__cuda_array_interface__");
  if (!is_memory) {
    Refuse(name, "give an array, or a Tensor, that can be written to");
  }
  const Tensor tensor = ValueOf(FromAny(source, /*copy=*/false));
  CheckWritable(name, source, tensor);
  return Writable(tensor);
}

Tensor Destinations::MemoryOfTensor(const std::string& name,
                                    const py::object& source) {
  const auto& object = source.cast<const TensorObject&>();
  const Tensor& tensor = object.get();
  if (tensor.byte_size() == 0) return tensor;
  if (!tensor.buffer()->writable()) {
    Refuse(name,
           "this Tensor's memory is read-only, like that of a Tensor received "
           "or made of an array: give the array itself, or Tensor.empty()");
  }
  if (absl::c_linear_search(tensors_, source.ptr())) {
    Refuse(name, "the same Tensor was given for another name");
  }
  tensors_.push_back(source.ptr());
  if (!tensor.device().is_host() || object.IsWritable()) return tensor;
  moved_.push_back({destinations_.size(), source});
  const DType dtype = tensor.dtype();
  tensor::Shape shape = tensor.shape();
  return ValueOf([&] {
    Unlocked unlocked;
    return Tensor::Allocate(dtype, std::move(shape), Pool());
  }());
}

void Destinations::Finish() {
  for (const Destination& destination : destinations_) {
    if (!destination.used.ok()) {
      Refuse(destination.name, destination.used.message());
    }
    NormaliseBools(destination.into);
  }
  for (const Moved& moved : moved_) {
    moved.tensor.cast<TensorObject&>().Replace(
        destinations_[moved.destination].into);
  }
}

}  // namespace penstock::python
