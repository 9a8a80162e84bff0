// Memory of other libraries' arrays, by DLPack.

#ifndef PENSTOCK_PYTHON_COLLECTIVES_LENT_MEMORY_H_
#define PENSTOCK_PYTHON_COLLECTIVES_LENT_MEMORY_H_

#include <dlpack/dlpack.h>
#include <pybind11/pybind11.h>

namespace penstock::python {

// An array on the CPU that a DLPack capsule lends, until this object ends. Has
// Python's buffer protocol, which shows bfloat16 as uint16. The array may be
// written: its library says nothing else by a capsule without a version.
//
// Call all functions with the GIL.
class LentMemory {
 public:
  // Takes the array over. Throws InvalidArgument if `capsule` is no unused
  // capsule, or if the array is on a device or has elements that NumPy lacks.
  explicit LentMemory(const pybind11::object& capsule);
  LentMemory(const LentMemory&) = delete;
  LentMemory& operator=(const LentMemory&) = delete;
  ~LentMemory();

  bool is_bfloat16() const;
  pybind11::buffer_info Describe() const;

 private:
  DLManagedTensor* lent_ = nullptr;
};

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_COLLECTIVES_LENT_MEMORY_H_
