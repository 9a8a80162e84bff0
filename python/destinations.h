// Memory of a Python program's that tensors are received into.

#ifndef PENSTOCK_PYTHON_DESTINATIONS_H_
#define PENSTOCK_PYTHON_DESTINATIONS_H_

#include <pybind11/pybind11.h>

#include <cstddef>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "tensor_service/destination.h"
#include "tensor_service/tensor.h"

namespace penstock::python {

// Where the tensors that a program names are received. Use it with the GIL.
//
// A Tensor is written to as by numpy(writable=True): what others hold does not
// change. If anything but it and its arrays uses its memory, another Tensor, a
// consumer of DLPack, a call, the peer, it is received into new memory in the
// pool, which Finish() gives to the Tensor. On a device it is written to where
// it is, as arrays are: there a peer that keeps what we send has a copy of it.
class Destinations {
 public:
  // `into` is None, for none, or a dict of Tensors, arrays of NumPy's, or what
  // has __dlpack__ or __cuda_array_interface__. Throws InvalidArgument for
  // memory that is read-only, or not laid out as a tensor's; and what Python
  // code throws.
  explicit Destinations(const pybind11::object& into);

  absl::Span<tensor::Destination> get() {
    return absl::MakeSpan(destinations_);
  }

  // Throws InvalidArgument, with the reason, if a tensor was not received into
  // its destination. Makes bools 0 or 1 there, as NumPy wants them.
  void Finish();

 private:
  // A Tensor that other memory is received for.
  struct Moved {
    size_t destination;
    pybind11::object tensor;
  };

  tensor::Tensor MemoryOf(const std::string& name,
                          const pybind11::object& source);
  tensor::Tensor MemoryOfTensor(const std::string& name,
                                const pybind11::object& source);

  std::vector<tensor::Destination> destinations_;
  std::vector<Moved> moved_;
  std::vector<PyObject*> tensors_;  // those that were given
};

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_DESTINATIONS_H_
