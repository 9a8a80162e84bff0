// Converts tensors to __cuda_array_interface__ and back. Numba, CuPy and others
// exchange arrays on CUDA devices by this interface.

#ifndef PENSTOCK_PYTHON_CUDA_ARRAYS_H_
#define PENSTOCK_PYTHON_CUDA_ARRAYS_H_

#include <pybind11/pybind11.h>

#include "absl/status/statusor.h"
#include "tensor_service/tensor.h"

namespace penstock::python {

// Returns the interface, version 3, of a tensor on a device, as a dict. Blocks
// until the elements may be read, so `stream` is None.
absl::StatusOr<pybind11::dict> CudaArrayInterfaceOf(
    const tensor::Tensor& tensor);

// Returns a tensor that borrows the memory of `source`, which has such an
// interface, and keeps the memory alive. The elements are ready once all work
// that is now in the interface's stream has run.
//
// Returns INVALID_ARGUMENT, with the remedy, for elements with gaps, masks,
// types that a Tensor lacks, and malformed interfaces. Returns
// FAILED_PRECONDITION if this process has no devices.
absl::StatusOr<tensor::Tensor> FromCudaArray(const pybind11::object& source);

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_CUDA_ARRAYS_H_
