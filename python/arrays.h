// Converts NumPy arrays to tensors and back, without a copy where possible.

#ifndef PENSTOCK_PYTHON_ARRAYS_H_
#define PENSTOCK_PYTHON_ARRAYS_H_

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <memory>

#include "absl/status/statusor.h"
#include "python/tensor_object.h"
#include "tensor_service/tensor.h"

namespace penstock::python {

// Returns INVALID_ARGUMENT, with the remedy, for a masked array with masked
// elements. A tensor would show the values under the mask.
absl::Status CheckNotMasked(const pybind11::object& array);

// Returns a tensor of the elements of `array`. Shares the array's memory if the
// elements are in row-major order without gaps, aligned and of native byte
// order. Otherwise, or if `copy` is true, copies them into the pool. Shared
// memory keeps the array alive until the last holder, on any thread, drops it.
// Refuses arrays like CheckNotMasked().
absl::StatusOr<tensor::Tensor> FromArray(const pybind11::array& array,
                                         bool copy);

// Returns a tensor of type `dtype` from an array of the elements' bits, which
// are unsigned integers of the same size. Shares and copies like FromArray().
absl::StatusOr<tensor::Tensor> FromBits(const pybind11::array& bits,
                                        tensor::DType dtype);

// Returns an array that shows the tensor's memory and keeps the memory alive.
// Call TensorObject::MakeWritable() before making a `writable` array. `dtype`
// has the size of the tensor's type. Throws InvalidArgument for dimensions that
// NumPy does not support, such as (0, 2**63 - 1).
pybind11::array ArrayOf(const TensorObject& object,
                        const pybind11::dtype& dtype, bool writable);

// Returns the dimensions as a tuple, like NumPy.
pybind11::tuple TupleOf(const tensor::Shape& shape);

// Makes every byte of a tensor of bools 0 or 1, because other values break
// NumPy. Only tensors of foreign peers can have other values; for these,
// replaces the object's memory.
absl::Status NormaliseBools(TensorObject* object);

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_ARRAYS_H_
