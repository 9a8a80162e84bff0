#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "python/arrays.h"
#include "python/bindings.h"
#include "python/capsules.h"
#include "python/cuda_arrays.h"
#include "python/devices.h"
#include "python/dtypes.h"
#include "python/errors.h"
#include "python/from_any.h"
#include "python/gil.h"
#include "python/tensor_object.h"
#include "tensor_service/dlpack.h"
#include "tensor_service/tensor.h"

namespace penstock::python {
namespace {

namespace py = pybind11;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

constexpr char kClassDoc[] = R"(A dense tensor in shared memory.

Tensor(array, copy=False) accepts

- a numpy array,
- an object with __dlpack__, such as a PyTorch tensor,
- an object with __cuda_array_interface__, such as a Numba array,
- another Tensor,
- any other argument of numpy.asarray().

The tensor shares the array's memory, and keeps the array alive, if the
elements are in row-major order without gaps, aligned, and in native byte
order. Sliced, transposed, reversed and big-endian arrays are copied; copy=True
copies any array. Copies lie in the pool, from which shm sends in place. Raises
InvalidArgument for an array with masked elements.

An array on a CUDA device stays on the device; see `device`. Such a tensor can
be sent, and lent to libraries that support the device. Call to_host() to copy
it to the pool before reading its elements on the CPU.

The array remains yours. Do not write to it while a call sends it: the peer may
get a mixture of old and new elements. You may write once put() or exchange()
has returned.)";

constexpr char kNumpyDoc[] = R"(Returns an array that shows the tensor's memory.

The array keeps the memory alive. It is read-only unless `writable` is true.

With writable=True, the tensor moves to a copy if anybody else uses its memory.
This is the case for memory of your own array, of a received message, lent by
DLPack, or sent and still used by the peer. Call numpy() again after each call
that sends the tensor: an older array still shows the old memory, and writing
to it may change the peer's data.

In a forked process, the parent counts as a user of its memory: the tensor
moves to a copy. Writing to an array from before the fork changes no data of
the parent or of a peer.

A tensor of bools with bytes other than 0 and 1, which a foreign peer may send,
is copied with 1 for such bytes. Raises InvalidArgument for bf16: see bits().)";

constexpr char kDLPackDoc[] = R"(Lends the memory as a DLPack capsule.

On a CUDA device, `stream` is the number of the consumer's stream, which then
waits until the elements may be read. None or 1 is the legacy default stream, 2
is the thread's own, and -1 is no stream. dl_device=(1, 0) requests a copy on
the CPU.

The consumer must not write to the memory. Today's DLPack cannot express that.
A received tensor may lie in read-only pages, where writing kills the process.
Use copy=True, or tensor.copy(), to write.)";

std::string ReprOf(const TensorObject& object) {
  return absl::StrCat("penstock.Tensor(", object.get().ToString(), ")");
}

py::tuple ShapeOf(const TensorObject& object) {
  return TupleOf(object.get().shape());
}

int64_t DimensionOf(py::handle number) {
  const Py_ssize_t dimension =
      PyNumber_AsSsize_t(number.ptr(), PyExc_OverflowError);
  if (dimension == -1 && PyErr_Occurred() != nullptr) {
    throw py::error_already_set();
  }
  return dimension;
}

// Converts a number to one dimension, like NumPy.
Shape ShapeFrom(const py::object& shape) {
  if (PyIndex_Check(shape.ptr()) != 0) return {DimensionOf(shape)};
  Shape dimensions;
  for (py::handle number : py::iter(shape)) {
    dimensions.push_back(DimensionOf(number));
  }
  return dimensions;
}

TensorObject Empty(const py::object& shape, const py::object& dtype) {
  Shape dimensions = ShapeFrom(shape);
  const DType type = ValueOf(ParseDType(dtype));
  return TensorObject(ValueOf([&] {
    Unlocked unlocked;
    return Tensor::Allocate(type, std::move(dimensions), Pool());
  }()));
}

py::array Numpy(TensorObject& object, bool writable) {
  const py::dtype dtype = ValueOf(NumpyOf(object.get().dtype()));
  absl::Status status = CheckOnHost(object.get(), "an array of numpy");
  if (!status.ok()) Throw(status);
  if (object.get().dtype() == DType::kBool) status = NormaliseBools(&object);
  if (status.ok() && writable) status = object.MakeWritable();
  if (!status.ok()) Throw(status);
  return ArrayOf(object, dtype, writable);
}

py::array Bits(TensorObject& object, bool writable) {
  absl::Status status = CheckOnHost(object.get(), "an array of numpy");
  if (status.ok() && writable) status = object.MakeWritable();
  if (!status.ok()) Throw(status);
  return ArrayOf(object, BitsOf(object.get().dtype()), writable);
}

// Implements the array protocol that numpy.asarray() and others call.
py::object ArrayProtocol(TensorObject& object, const py::object& dtype,
                         const py::object& copy) {
  py::object array = Numpy(object, /*writable=*/false);
  if (!dtype.is_none()) {
    array = array.attr("astype")(dtype, py::arg("copy") = false);
  }
  if (copy.is(py::bool_(true))) array = array.attr("copy")();
  return array;
}

TensorObject Copy(const TensorObject& object) {
  // Holds the tensor, because another thread may replace the object's memory.
  const std::shared_ptr<const Tensor> tensor = object.Share();
  return TensorObject(ValueOf([&tensor] {
    Unlocked unlocked;
    return tensor->CopyTo(tensor->device(), Pool());
  }()));
}

TensorObject View(const TensorObject& object, const py::object& dtype) {
  const Tensor& tensor = object.get();
  const DType as = ValueOf(ParseDType(dtype));
  if (tensor::ElementSize(as) != tensor::ElementSize(tensor.dtype())) {
    Throw(absl::InvalidArgumentError(
        absl::StrCat("view ", tensor.ToString(), " as ", tensor::Name(as),
                     ": the sizes of the elements differ; convert them with ",
                     "tensor.numpy().astype()")));
  }
  return TensorObject(
      ValueOf(Tensor::FromBuffer(as, tensor.shape(), tensor.buffer())));
}

bool IsCpu(const py::object& device) {
  return device.equal(py::make_tuple(int{kDLCPU}, 0));
}

py::tuple DLPackDevice(const TensorObject& object) {
  const DLDevice device = tensor::DLPackDeviceOf(object.get());
  return py::make_tuple(static_cast<int>(device.device_type),
                        static_cast<int>(device.device_id));
}

py::capsule DLPackOnDevice(const TensorObject& object, const py::object& stream,
                           const py::object& device, const py::object& copy) {
  if (!device.is_none() && IsCpu(device)) {
    if (copy.is(py::bool_(false))) {
      throw py::buffer_error(
          "a penstock.Tensor on a device cannot be lent to the CPU without a "
          "copy: ask for it without copy=False");
    }
    return ValueOf(ToCapsule(ToHost(object).get()));
  }
  if (!device.is_none() && !device.equal(DLPackDevice(object))) {
    throw py::buffer_error(absl::StrCat(
        "a penstock.Tensor on ", object.get().device().ToString(),
        " is not lent to another device: copy it by to_device() first"));
  }
  if (copy.is(py::bool_(true))) return ValueOf(ToCapsule(Copy(object).get()));
  const absl::Status status = OrderStream(object.get(), stream);
  if (!status.ok()) Throw(status);
  return ValueOf(ToCapsule(object.get()));
}

py::capsule DLPack(const TensorObject& object, const py::object& stream,
                   const py::object& max_version, const py::object& device,
                   const py::object& copy) {
  (void)max_version;  // every consumer accepts a capsule without a version
  if (!object.get().device().is_host()) {
    return DLPackOnDevice(object, stream, device, copy);
  }
  if (!stream.is_none() || !(device.is_none() || IsCpu(device))) {
    throw py::buffer_error(
        "a penstock.Tensor is in the CPU's memory, which has no streams: ask "
        "for it without stream and dl_device, then copy it to the device");
  }
  if (!copy.is(py::bool_(true))) return ValueOf(ToCapsule(object.get()));
  return ValueOf(ToCapsule(Copy(object).get()));
}

py::dict CudaArrayInterface(const TensorObject& object) {
  const Tensor& tensor = object.get();
  const char* why = nullptr;
  if (tensor.device().is_host()) {
    why =
        "a penstock.Tensor in the CPU's memory has no "
        "__cuda_array_interface__: use numpy(), or to_device() first";
  } else if (tensor.dtype() == DType::kBF16) {
    why =
        "__cuda_array_interface__ has no bf16: use __dlpack__, or "
        "view('int16') first";
  }
  if (why == nullptr) return ValueOf(CudaArrayInterfaceOf(tensor));
  // Raises AttributeError, so that hasattr() returns false.
  PyErr_SetString(PyExc_AttributeError, why);
  throw py::error_already_set();
}

void BindMemory(py::class_<TensorObject>& binding) {
  binding
      .def("numpy", &Numpy, py::kw_only(), py::arg("writable") = false,
           kNumpyDoc)
      .def("bits", &Bits, py::kw_only(), py::arg("writable") = false,
           "Returns the bits of the elements, as an array of unsigned integers "
           "of the same size: uint16 for bf16. Otherwise like numpy().")
      .def("__array__", &ArrayProtocol, py::arg("dtype") = py::none(),
           py::arg("copy") = py::none())
      .def("__dlpack__", &DLPack, py::kw_only(), py::arg("stream") = py::none(),
           py::arg("max_version") = py::none(),
           py::arg("dl_device") = py::none(), py::arg("copy") = py::none(),
           kDLPackDoc)
      .def("__dlpack_device__", &DLPackDevice)
      .def_property_readonly(
          "__cuda_array_interface__", &CudaArrayInterface,
          "The interface by which Numba, CuPy and others share arrays on a "
          "CUDA device. Waits until the elements may be read.")
      .def_property_readonly(
          "device",
          [](const TensorObject& object) {
            return object.get().device().ToString();
          },
          "The location of the elements: \"cpu\", or \"cuda:0\" and so on.")
      .def("to_host", &ToHost,
           "Returns this tensor if it is in the CPU's memory, and otherwise "
           "a copy in the pool.")
      .def("to_device", &ToDevice, py::arg("device"),
           "Returns this tensor if it is on `device`, such as \"cuda:0\", "
           "and otherwise a copy on that device.");
}

}  // namespace

void BindTensor(py::module_& module) {
  py::class_<TensorObject> binding(module, "Tensor", kClassDoc);
  binding
      .def(py::init([](const py::object& array, bool copy) {
             return TensorObject(ValueOf(FromAny(array, copy)));
           }),
           py::arg("array"), py::kw_only(), py::arg("copy") = false)
      .def_static("empty", &Empty, py::arg("shape"), py::arg("dtype") = "f32",
                  "Makes an uninitialised tensor in the pool. Fill "
                  "tensor.numpy(writable=True) in place: shm then sends the "
                  "tensor without a copy.")
      .def_static(
          "from_bits",
          [](const py::array& bits, const py::object& dtype) {
            return TensorObject(
                ValueOf(FromBits(bits, ValueOf(ParseDType(dtype)))));
          },
          py::arg("bits"), py::arg("dtype"),
          "Makes a tensor from the bits of its elements, as returned by "
          "bits(). Shares and copies memory like Tensor().")
      .def_property_readonly("shape", &ShapeOf, "The dimensions.")
      .def_property_readonly(
          "dtype",
          [](const TensorObject& object) {
            return std::string(tensor::Name(object.get().dtype()));
          },
          "The element type: f32, f64, f16, bf16, int8, int16, int32, int64, "
          "uint8 or bool.")
      .def_property_readonly(
          "nbytes",
          [](const TensorObject& object) { return object.get().byte_size(); },
          "The size of all elements, in bytes.")
      .def_property_readonly(
          "held_bytes",
          [](const TensorObject& object) { return object.get().held_bytes(); },
          "The memory that the tensor keeps from being freed, in bytes. For a "
          "part of a received message, this is the whole message.")
      .def("copy", &Copy,
           "Returns a copy in the pool, or on the tensor's device.")
      .def("view", &View, py::arg("dtype"),
           "Returns a tensor that shares the memory, with another element type "
           "of the same size.")
      .def("__repr__", &ReprOf);
  BindMemory(binding);
  module.def(
      "from_dlpack",
      [](const py::object& source) {
        return TensorObject(ValueOf(FromDLPackSource(source)));
      },
      py::arg("source"),
      "Makes a tensor that shares the memory of an object that has __dlpack__, "
      "or of a capsule, which can be used once. Copies elements that are not "
      "in row-major order. Elements on a CUDA device stay there; such an "
      "object may have __cuda_array_interface__ instead. Raises "
      "InvalidArgument for memory of other devices.");
}

}  // namespace penstock::python
