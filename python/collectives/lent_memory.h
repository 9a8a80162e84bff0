// Memory of other libraries' arrays, by DLPack.

#ifndef PENSTOCK_PYTHON_COLLECTIVES_LENT_MEMORY_H_
#define PENSTOCK_PYTHON_COLLECTIVES_LENT_MEMORY_H_

#include <dlpack/dlpack.h>
#include <pybind11/pybind11.h>

namespace penstock::python {

// An array on the CPU that a DLPack capsule lends until this object is
// destroyed. Has Python's buffer protocol, which shows bfloat16 as uint16. The
// buffer is writable, because a capsule without a version cannot forbid
// writing.
//
// Call all functions with the GIL.
class LentMemory {
 public:
  // Takes ownership of the capsule's array. Throws InvalidArgument if `capsule`
  // is not a DLPack capsule or was used before, if the array is on a device, or
  // if NumPy has no such element type.
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
