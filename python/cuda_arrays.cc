#include "python/cuda_arrays.h"

#include <pybind11/numpy.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "python/arrays.h"
#include "python/devices.h"
#include "python/dtypes.h"
#include "python/errors.h"
#include "python/gil.h"
#include "tensor_service/buffer.h"
#include "tensor_service/device_memory.h"

namespace penstock::python {
namespace {

namespace py = pybind11;
using tensor::Buffer;
using tensor::Device;
using tensor::DeviceEvent;
using tensor::DeviceMemory;
using tensor::DType;
using tensor::Shape;
using tensor::Stream;
using tensor::Tensor;

constexpr int kVersion = 3;

absl::Status Refused(absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("__cuda_array_interface__: ", why));
}

// Reads the fields of an interface. Throws py::cast_error, or Python's
// TypeError, for a malformed interface.
class Fields {
 public:
  explicit Fields(const py::object& source)
      : dict_(source.attr("__cuda_array_interface__").cast<py::dict>()) {}

  py::object Get(const char* name) const {
    return dict_.contains(name) ? py::object(dict_[name]) : py::none();
  }

  absl::StatusOr<DType> ReadType() const {
    const py::dtype type(Get("typestr").cast<std::string>());
    if (!type.attr("isnative").cast<bool>()) {
      return Refused("its elements are of the other byte order");
    }
    return DTypeOfNumpy(type);
  }

  absl::StatusOr<Shape> ReadShape() const {
    const auto sizes = Get("shape").cast<py::tuple>();
    if (sizes.size() > tensor::kMaxRank) {
      return Refused(absl::StrCat("it has ", sizes.size(),
                                  " dimensions; at most ", tensor::kMaxRank));
    }
    Shape shape;
    for (const py::handle size : sizes) shape.push_back(size.cast<int64_t>());
    return shape;
  }

  // Checks the layout of an array that has elements.
  absl::Status CheckPacked(const Shape& shape, DType dtype) const {
    if (!Get("mask").is_none()) {
      return Refused(
          "the array has a mask, which a Tensor cannot have: fill the array "
          "first");
    }
    if (Get("strides").is_none()) return absl::OkStatus();
    const auto strides = Get("strides").cast<py::tuple>();
    bool is_packed = strides.size() == shape.size();
    auto wanted = static_cast<int64_t>(tensor::ElementSize(dtype));
    for (size_t d = shape.size(); is_packed && d > 0; --d) {
      is_packed = shape[d - 1] == 1 || strides[d - 1].cast<int64_t>() == wanted;
      wanted *= shape[d - 1];
    }
    if (is_packed) return absl::OkStatus();
    return Refused(
        "its elements do not lie in row-major order without gaps; copy them so "
        "there first, in CuPy by cupy.ascontiguousarray()");
  }

  absl::StatusOr<uintptr_t> ReadAddress() const {
    const auto data = Get("data").cast<py::tuple>();
    if (data.size() != 2) return Refused("its data is not a pair");
    return py::object(data[0]).cast<uintptr_t>();
  }

  // Returns the stream of the producer's work, or 0 if all work has run.
  absl::StatusOr<Stream> ReadStream() const {
    const py::object stream = Get("stream");
    if (stream.is_none()) {
      // Returns 0 if the interface says that all work has ended. Interfaces
      // before version 3 have no stream field, which means the default stream.
      const bool says_none = Get("version").cast<int>() >= kVersion;
      return says_none ? Stream() : Stream::Legacy();
    }
    const auto handle = stream.cast<uintptr_t>();
    if (handle != 0) return Stream{handle};
    return Refused("its stream is 0, which is none: give 1 or 2");
  }

 private:
  const py::dict dict_;
};

// Returns an event after the producer's work, or null if that work has run.
absl::StatusOr<std::shared_ptr<const DeviceEvent>> EventAfter(
    DeviceMemory* memory, const Device& device, Stream stream) {
  if (stream.handle == 0) return std::shared_ptr<const DeviceEvent>();
  Unlocked unlocked;
  return memory->Record(device, stream);
}

absl::StatusOr<Device> DeviceAt(DeviceMemory* memory, uintptr_t address) {
  Unlocked unlocked;
  return memory->DeviceOf(address);
}

absl::StatusOr<Tensor> Borrow(const py::object& source, DeviceMemory* memory) {
  const Fields fields(source);
  absl::StatusOr<DType> dtype = fields.ReadType();
  if (!dtype.ok()) return dtype.status();
  absl::StatusOr<Shape> shape = fields.ReadShape();
  if (!shape.ok()) return shape.status();
  absl::StatusOr<size_t> bytes = tensor::ByteSize(*dtype, *shape);
  if (!bytes.ok()) return Refused(bytes.status().message());
  if (*bytes == 0) return Tensor::Allocate(*dtype, *shape);
  absl::Status status = fields.CheckPacked(*shape, *dtype);
  if (!status.ok()) return status;
  absl::StatusOr<Stream> stream = fields.ReadStream();
  if (!stream.ok()) return stream.status();
  absl::StatusOr<uintptr_t> address = fields.ReadAddress();
  if (!address.ok()) return address.status();
  absl::StatusOr<Device> device = DeviceAt(memory, *address);
  if (!device.ok()) return device.status();
  auto ready = EventAfter(memory, *device, *stream);
  if (!ready.ok()) return ready.status();
  PyObject* const held = py::object(source).release().ptr();
  return Tensor::FromBuffer(
      *dtype, *shape,
      Buffer::WrapDevice(
          *device, *address, *bytes, /*writable=*/false,
          [held] { RunLater([held] { Py_DECREF(held); }); },
          *std::move(ready)));
}

}  // namespace

absl::StatusOr<py::dict> CudaArrayInterfaceOf(const Tensor& tensor) {
  absl::StatusOr<py::dtype> type = NumpyOf(tensor.dtype());
  if (!type.ok()) return type.status();
  const bool is_empty = tensor.byte_size() == 0;
  if (!is_empty) {
    absl::Status status = AwaitReady(tensor);
    if (!status.ok()) return status;
  }
  py::dict fields;
  fields["version"] = kVersion;
  fields["shape"] = TupleOf(tensor.shape());
  fields["typestr"] = type->attr("str");
  fields["data"] =
      py::make_tuple(is_empty ? 0 : tensor.buffer()->device_address(),
                     !tensor.buffer()->writable());
  fields["strides"] = py::none();
  fields["stream"] = py::none();
  return fields;
}

absl::StatusOr<Tensor> FromCudaArray(const py::object& source) {
  absl::StatusOr<DeviceMemory*> memory = NeedDevices("CUDA devices");
  if (!memory.ok()) return memory.status();
  try {
    return Borrow(source, *memory);
  } catch (const py::cast_error&) {
  } catch (const py::error_already_set& error) {
    // Converts these exceptions to errors. NumPy and Python also raise them for
    // an invalid text, or for a number out of range.
    if (!error.matches(PyExc_TypeError) && !error.matches(PyExc_ValueError) &&
        !error.matches(PyExc_OverflowError)) {
      throw;
    }
  }
  return Refused("it is none: see its documentation for the form");
}

}  // namespace penstock::python
