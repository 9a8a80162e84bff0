// __cuda_array_interface__, by which Numba, CuPy and others exchange arrays on
// CUDA devices.

#ifndef PENSTOCK_PYTHON_CUDA_ARRAYS_H_
#define PENSTOCK_PYTHON_CUDA_ARRAYS_H_

#include <pybind11/pybind11.h>

#include "absl/status/statusor.h"
#include "tensor_service/tensor.h"

namespace penstock::python {

// Returns the interface, of version 3, of a tensor on a device: a dict. Its
// `stream` is None, as this waits until the elements may be read.
absl::StatusOr<pybind11::dict> CudaArrayInterfaceOf(
    const tensor::Tensor& tensor);

// Borrows the memory of `source`, which has such an interface, and keeps it
// alive. The elements count as ready once all has run that is now in the
// stream that it names.
//
// Returns INVALID_ARGUMENT, with the remedy, for elements with gaps, masks,
// types that a Tensor lacks, and what is no such interface;
// FAILED_PRECONDITION if this process has no devices.
absl::StatusOr<tensor::Tensor> FromCudaArray(const pybind11::object& source);

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_CUDA_ARRAYS_H_
