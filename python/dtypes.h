// Converts between element types of Penstock and NumPy.

#ifndef PENSTOCK_PYTHON_DTYPES_H_
#define PENSTOCK_PYTHON_DTYPES_H_

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <string>

#include "absl/status/statusor.h"
#include "tensor_service/dtype.h"

namespace penstock::python {

// Returns the element type of a NumPy type of either byte order. Returns
// INVALID_ARGUMENT, with the remedy, if there is none.
absl::StatusOr<tensor::DType> DTypeOfNumpy(const pybind11::dtype& numpy);

// Returns the element type that a user names: "f32", "bf16", or any argument of
// numpy.dtype(). Throws the exceptions of numpy.dtype().
absl::StatusOr<tensor::DType> ParseDType(const pybind11::object& named);

// Returns NumPy's type for `dtype`. Returns INVALID_ARGUMENT, with the remedy,
// for bf16, which NumPy lacks.
absl::StatusOr<pybind11::dtype> NumpyOf(tensor::DType dtype);

// Returns NumPy's unsigned integer type of the same size.
pybind11::dtype BitsOf(tensor::DType dtype);

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_DTYPES_H_
