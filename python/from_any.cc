#include "python/from_any.h"

#include <pybind11/numpy.h>

#include "python/arrays.h"
#include "python/capsules.h"
#include "python/cuda_arrays.h"
#include "python/gil.h"
#include "python/tensor_object.h"

namespace penstock::python {
namespace {

namespace py = pybind11;
using tensor::Tensor;

absl::StatusOr<Tensor> CopyIf(bool copy, absl::StatusOr<Tensor> tensor) {
  if (!tensor.ok() || !copy) return tensor;
  Unlocked unlocked;
  return tensor->CopyTo(tensor->device(), Pool());
}

}  // namespace

absl::StatusOr<Tensor> FromAny(const py::object& source, bool copy) {
  if (py::isinstance<TensorObject>(source)) {
    return CopyIf(copy, source.cast<const TensorObject&>().get());
  }
  if (py::isinstance<py::array>(source)) {
    return FromArray(py::reinterpret_borrow<py::array>(source), copy);
  }
  if (py::hasattr(source, "__dlpack__")) {
    return CopyIf(copy, FromCapsule(source));
  }
  if (py::hasattr(source, "__cuda_array_interface__")) {
    return CopyIf(copy, FromCudaArray(source));
  }
  const py::array array = py::module_::import("numpy").attr("asarray")(source);
  return FromArray(array, copy);
}

absl::StatusOr<Tensor> FromDLPackSource(const py::object& source) {
  if (py::isinstance<py::array>(source)) {
    return FromArray(py::reinterpret_borrow<py::array>(source), false);
  }
  const bool is_cuda_only = !py::hasattr(source, "__dlpack__") &&
                            py::hasattr(source, "__cuda_array_interface__");
  return is_cuda_only ? FromCudaArray(source) : FromCapsule(source);
}

}  // namespace penstock::python
