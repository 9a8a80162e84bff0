// Tensors of whatever a Python program has.

#ifndef PENSTOCK_PYTHON_FROM_ANY_H_
#define PENSTOCK_PYTHON_FROM_ANY_H_

#include <pybind11/pybind11.h>

#include "absl/status/statusor.h"
#include "tensor_service/tensor.h"

namespace penstock::python {

// Returns a tensor of `source`: a Tensor of this module, an array of NumPy's,
// anything that has __dlpack__ or __cuda_array_interface__, or what
// numpy.asarray() takes. Shares memory where it can, unless `copy` is true:
// then copies into the pool, or, what is on a device, there. Throws what Python
// code throws.
absl::StatusOr<tensor::Tensor> FromAny(const pybind11::object& source,
                                       bool copy);

// Does the same for penstock.from_dlpack(). NumPy 1.24 exports neither arrays
// that are read-only nor bools by DLPack, so its arrays are taken directly.
absl::StatusOr<tensor::Tensor> FromDLPackSource(const pybind11::object& source);

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_FROM_ANY_H_
