// Memory of a Python program's that tensors are received into.

#ifndef PENSTOCK_PYTHON_DESTINATIONS_H_
#define PENSTOCK_PYTHON_DESTINATIONS_H_

#include <pybind11/pybind11.h>

#include <vector>

#include "tensor_service/destination.h"

namespace penstock::python {

// Returns destinations for the tensors that `into` names: Tensors, arrays of
// NumPy's, or what has __dlpack__ or __cuda_array_interface__, whose memory is
// written to where it is. None: none. Throws InvalidArgument for memory that is
// read-only, or not laid out as a tensor's; and what Python code throws.
std::vector<tensor::Destination> DestinationsOf(const pybind11::object& into);

// Throws InvalidArgument, with the reason, if a tensor was not received into
// its destination. Makes bools 0 or 1 there, as NumPy wants them.
void FinishDestinations(std::vector<tensor::Destination>* destinations);

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_DESTINATIONS_H_
