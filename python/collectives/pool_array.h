// Memory of a group's pool for an array of NumPy.

#ifndef PENSTOCK_PYTHON_COLLECTIVES_POOL_ARRAY_H_
#define PENSTOCK_PYTHON_COLLECTIVES_POOL_ARRAY_H_

#include <pybind11/pybind11.h>

#include <cstdint>
#include <memory>

#include "collectives/host/pool.h"

namespace penstock::python {

// Writable bytes of a pool, by Python's buffer protocol. May outlive the group.
// In the child of a fork, the bytes remain the parent's: both processes use
// them, and the child does not free them.
class PoolArray {
 public:
  explicit PoolArray(std::unique_ptr<collectives::PoolMemory> memory);
  PoolArray(const PoolArray&) = delete;
  PoolArray& operator=(const PoolArray&) = delete;
  ~PoolArray();

  pybind11::buffer_info Describe() const;

 private:
  std::unique_ptr<collectives::PoolMemory> memory_;
  const uint32_t fork_count_;
};

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_COLLECTIVES_POOL_ARRAY_H_
