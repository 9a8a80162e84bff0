#include "python/collectives/pool_array.h"

#include <utility>

#include "python/collectives/bindings.h"
#include "transport/progress/fork_count.h"

namespace penstock::python {

namespace py = pybind11;

PoolArray::PoolArray(std::unique_ptr<collectives::PoolMemory> memory)
    : memory_(std::move(memory)), fork_count_(progress::ForkCount()) {}

PoolArray::~PoolArray() {
  if (progress::ForkCount() != fork_count_) (void)memory_.release();
}

py::buffer_info PoolArray::Describe() const {
  return {static_cast<uint8_t*>(memory_->data()),
          static_cast<ssize_t>(memory_->size())};
}

void BindPoolArray(py::module_& module) {
  py::class_<PoolArray>(module, "PoolArray", py::buffer_protocol())
      .def_buffer(&PoolArray::Describe);
}

}  // namespace penstock::python
