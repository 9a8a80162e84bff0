// Memory of a Python program that tensors are received into.

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

// The destinations that a program names. Use this class with the GIL.
//
// A Tensor as a destination behaves like numpy(writable=True): memory that
// others also hold does not change. Another holder may be another Tensor, a
// consumer of DLPack, a call, or the peer. With other holders, the data is
// received into new memory of the pool, which Finish() gives to the Tensor. On
// a device, a Tensor is overwritten in place, like an array, because peers hold
// only copies of device memory.
class Destinations {
 public:
  // Accepts None or a dict of destinations by name: Tensors, NumPy arrays, and
  // objects that have __dlpack__ or __cuda_array_interface__. Throws
  // InvalidArgument for memory that is read-only or does not have a tensor's
  // layout, and the exceptions of Python code.
  explicit Destinations(const pybind11::object& into);

  absl::Span<tensor::Destination> get() {
    return absl::MakeSpan(destinations_);
  }

  // Throws InvalidArgument, with the reason, if a tensor was not received into
  // its destination. Makes bools 0 or 1, as NumPy requires.
  void Finish();

 private:
  // A Tensor that gets new memory, because its current memory has other
  // holders.
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
  std::vector<PyObject*> tensors_;  // the destinations that are Tensors
};

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_DESTINATIONS_H_
