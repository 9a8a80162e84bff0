// Tensors of NumPy's arrays, and arrays of tensors, without a copy where that
// is possible.

#ifndef PENSTOCK_PYTHON_ARRAYS_H_
#define PENSTOCK_PYTHON_ARRAYS_H_

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <memory>

#include "absl/status/statusor.h"
#include "python/tensor_object.h"
#include "tensor_service/tensor.h"

namespace penstock::python {

// Returns INVALID_ARGUMENT, with the remedy, for a masked array of which
// elements are masked: a tensor would show what lies under the mask.
absl::Status CheckNotMasked(const pybind11::object& array);

// Returns a tensor of the elements of `array`. Shares its memory if it is in
// row-major order without gaps, aligned and of native byte order. Otherwise, or
// if `copy` is true, copies it into the pool. Shared memory keeps the array
// alive until its last holder lets go, on whichever thread. Refuses arrays as
// CheckNotMasked() does.
absl::StatusOr<tensor::Tensor> FromArray(const pybind11::array& array,
                                         bool copy);

// Returns a tensor of type `dtype` with the bits of an array of unsigned
// integers of that size. Shares and copies as FromArray() does.
absl::StatusOr<tensor::Tensor> FromBits(const pybind11::array& bits,
                                        tensor::DType dtype);

// Returns an array that shows the tensor's memory and keeps it alive. One that
// is `writable` needs TensorObject::MakeWritable() first. `dtype` has the size
// of the tensor's. Throws InvalidArgument for dimensions that NumPy cannot
// have, such as (0, 2**63 - 1).
pybind11::array ArrayOf(const TensorObject& object,
                        const pybind11::dtype& dtype, bool writable);

// Returns the dimensions as NumPy has them.
pybind11::tuple TupleOf(const tensor::Shape& shape);

// Makes every byte of a tensor of bools 0 or 1, since NumPy takes the others
// for an error of its own. They are already unless the tensor is of a foreign
// peer. Otherwise gives the object new memory.
absl::Status NormaliseBools(TensorObject* object);

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_ARRAYS_H_
