// DLPack's capsules, by which Python's libraries exchange arrays.

#ifndef PENSTOCK_PYTHON_CAPSULES_H_
#define PENSTOCK_PYTHON_CAPSULES_H_

#include <pybind11/pybind11.h>

#include "absl/status/statusor.h"
#include "tensor_service/tensor.h"

namespace penstock::python {

// Returns a capsule named "dltensor", as tensor_service/dlpack.h lends it. A
// consumer renames it and calls the deleter; otherwise the capsule does.
absl::StatusOr<pybind11::capsule> ToCapsule(const tensor::Tensor& tensor);

// Borrows the memory of `source`: a capsule, or an object that has __dlpack__.
// Memory on a device is asked for, and counts as ready, in CUDA's legacy
// default stream, which is what a capsule without a stream means.
//
// Renames the capsule to "used_dltensor", or, on an error, leaves it to its
// producer. Copies what is not in row-major order into the pool. The producer's
// deleter runs with the GIL.
//
// Returns INVALID_ARGUMENT, with the remedy, as FromDLPack() does, and for a
// capsule that was used before. Throws what the source's __dlpack__ throws.
absl::StatusOr<tensor::Tensor> FromCapsule(const pybind11::object& source);

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_CAPSULES_H_
