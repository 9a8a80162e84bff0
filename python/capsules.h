// Converts tensors to DLPack capsules and back. Python's libraries exchange
// arrays in such capsules.

#ifndef PENSTOCK_PYTHON_CAPSULES_H_
#define PENSTOCK_PYTHON_CAPSULES_H_

#include <pybind11/pybind11.h>

#include "absl/status/statusor.h"
#include "tensor_service/tensor.h"

namespace penstock::python {

// Returns a capsule named "dltensor", see tensor_service/dlpack.h. A consumer
// renames the capsule and calls the deleter. If there is no consumer, the
// capsule's destructor calls the deleter.
absl::StatusOr<pybind11::capsule> ToCapsule(const tensor::Tensor& tensor);

// Returns a tensor that borrows the memory of `source`: a capsule, or an object
// that has __dlpack__. For memory on a device, asks for a tensor that is ready
// in CUDA's legacy default stream: a capsule without a stream means that
// stream.
//
// Renames the capsule to "used_dltensor". On an error, leaves the capsule to
// its producer. Copies elements that are not in row-major order into the pool.
// The producer's deleter runs with the GIL.
//
// Returns INVALID_ARGUMENT, with the remedy, like FromDLPack(), and for a
// capsule that was already used. Throws the exceptions of the source's
// __dlpack__.
absl::StatusOr<tensor::Tensor> FromCapsule(const pybind11::object& source);

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_CAPSULES_H_
