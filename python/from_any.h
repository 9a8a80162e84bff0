// Makes tensors from any Python object with array data.

#ifndef PENSTOCK_PYTHON_FROM_ANY_H_
#define PENSTOCK_PYTHON_FROM_ANY_H_

#include <pybind11/pybind11.h>

#include "absl/status/statusor.h"
#include "tensor_service/tensor.h"

namespace penstock::python {

// Returns a tensor of `source`: a Tensor of this module, a NumPy array, an
// object that has __dlpack__ or __cuda_array_interface__, or any argument of
// numpy.asarray(). Shares memory where possible. If `copy` is true, copies into
// the pool, or on the same device. Throws the exceptions of Python code.
absl::StatusOr<tensor::Tensor> FromAny(const pybind11::object& source,
                                       bool copy);

// Wraps an object's memory like FromAny(), without a copy, for
// penstock.from_dlpack(). NumPy arrays are read directly: NumPy 1.24 exports
// neither read-only arrays nor bools by DLPack.
absl::StatusOr<tensor::Tensor> FromDLPackSource(const pybind11::object& source);

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_FROM_ANY_H_
