#include "python/arrays.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "python/dtypes.h"
#include "python/errors.h"
#include "python/gil.h"
#include "tensor_service/buffer.h"

namespace penstock::python {
namespace {

namespace py = pybind11;
using tensor::Buffer;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

Shape ShapeOf(const py::array& array) {
  return Shape(array.shape(), array.shape() + array.ndim());
}

// Returns true if a tensor can share the array's memory.
bool IsPlain(const py::array& array) {
  constexpr int kWanted = py::detail::npy_api::NPY_ARRAY_ALIGNED_ |
                          py::detail::npy_api::NPY_ARRAY_C_CONTIGUOUS_;
  return (array.flags() & kWanted) == kWanted &&
         array.dtype().attr("isnative").cast<bool>();
}

absl::StatusOr<Tensor> Share(const py::array& array, DType dtype) {
  PyObject* const held = array.inc_ref().ptr();
  return Tensor::FromBuffer(
      dtype, ShapeOf(array),
      Buffer::Wrap(const_cast<void*>(array.data()),
                   static_cast<size_t>(array.nbytes()), /*writable=*/false,
                   [held] { RunLater([held] { Py_DECREF(held); }); }));
}

// Copies by NumPy, which supports all layouts and byte orders.
absl::StatusOr<Tensor> Copy(const py::array& array, DType dtype,
                            const py::dtype& as) {
  absl::StatusOr<Tensor> tensor = [&] {
    Shape shape = ShapeOf(array);
    Unlocked unlocked;
    return Tensor::Allocate(dtype, std::move(shape), Pool());
  }();
  if (!tensor.ok()) return tensor;
  const TensorObject copy(*tensor);
  py::module_::import("numpy").attr("copyto")(
      ArrayOf(copy, as, /*writable=*/true), array);
  return tensor;
}

absl::StatusOr<Tensor> ShareOrCopy(const py::array& array, DType dtype,
                                   const py::dtype& as, bool copy) {
  const absl::Status masked = CheckNotMasked(array);
  if (!masked.ok()) return masked;
  // Checks the shape before allocating memory.
  absl::StatusOr<size_t> bytes = tensor::ByteSize(dtype, ShapeOf(array));
  if (!bytes.ok()) return bytes.status();
  return copy || !IsPlain(array) ? Copy(array, dtype, as) : Share(array, dtype);
}

// Returns an array for a tensor without elements. NumPy limits the product of
// the dimensions that are not 0.
py::array EmptyArray(const py::dtype& dtype, const Tensor& tensor) {
  try {
    return py::array(dtype, tensor.shape());
  } catch (const py::error_already_set& error) {
    if (!error.matches(PyExc_ValueError)) throw;
  }
  Throw(absl::InvalidArgumentError(
      absl::StrCat("numpy has no array of the shape of penstock.Tensor(",
                   tensor.ToString(), "); it has no elements")));
}

}  // namespace

absl::Status CheckNotMasked(const py::object& array) {
  if (Py_TYPE(array.ptr()) == py::detail::npy_api::get().PyArray_Type_ ||
      !py::isinstance<py::array>(array)) {
    return absl::OkStatus();
  }
  const py::module_ numpy = py::module_::import("numpy.ma");
  if (!numpy.attr("is_masked")(array).cast<bool>()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "elements of the array are masked, and a Tensor has no mask: give "
      "array.filled(value), and the mask as another tensor, "
      "numpy.ma.getmaskarray(array)");
}

absl::StatusOr<Tensor> FromArray(const py::array& array, bool copy) {
  absl::StatusOr<DType> dtype = DTypeOfNumpy(array.dtype());
  if (!dtype.ok()) return dtype.status();
  absl::StatusOr<py::dtype> native = NumpyOf(*dtype);
  if (!native.ok()) return native.status();
  return ShareOrCopy(array, *dtype, *native, copy);
}

absl::StatusOr<Tensor> FromBits(const py::array& bits, DType dtype) {
  const py::dtype wanted = BitsOf(dtype);
  if (bits.dtype().kind() != 'u' ||
      bits.dtype().itemsize() != wanted.itemsize()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the bits of ", tensor::Name(dtype), " are numpy's ", TextOf(wanted),
        ", and the array is of ", TextOf(bits.dtype()), ": use array.view('",
        TextOf(wanted), "')"));
  }
  return ShareOrCopy(bits, dtype, wanted, /*copy=*/false);
}

py::array ArrayOf(const TensorObject& object, const py::dtype& dtype,
                  bool writable) {
  using Kept = std::shared_ptr<const Tensor>;
  const Tensor& tensor = object.get();
  if (tensor.byte_size() == 0) return EmptyArray(dtype, tensor);
  auto kept = std::make_unique<Kept>(object.Share());
  const py::capsule owner(kept.get(), [](void* share) {
    delete static_cast<Kept*>(share);
    RunPending();
  });
  (void)kept.release();
  py::array array(dtype, tensor.shape(), tensor.buffer()->data(), owner);
  if (!writable) array.attr("setflags")(py::arg("write") = false);
  return array;
}

py::tuple TupleOf(const Shape& shape) {
  py::tuple tuple(shape.size());
  for (size_t i = 0; i < shape.size(); ++i) tuple[i] = py::int_(shape[i]);
  return tuple;
}

absl::Status NormaliseBools(TensorObject* object) {
  const Tensor& before = object->get();
  const absl::string_view bytes = before.bytes();
  const bool is_normal = std::all_of(bytes.begin(), bytes.end(), [](char byte) {
    return static_cast<uint8_t>(byte) <= 1;
  });
  if (is_normal) return absl::OkStatus();
  absl::StatusOr<Tensor> copy = before.Copy(Pool());
  if (!copy.ok()) return copy.status();
  char* const to = copy->buffer()->mutable_data();
  std::transform(bytes.begin(), bytes.end(), to,
                 [](char byte) { return static_cast<char>(byte != 0); });
  object->Replace(*std::move(copy));
  return absl::OkStatus();
}

}  // namespace penstock::python
