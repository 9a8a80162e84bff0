#include "python/collectives/view.h"

namespace penstock::python {

namespace py = pybind11;

View::View(py::handle object, bool writable) {
  if (object.is_none()) return;
  if (PyObject_GetBuffer(object.ptr(), &buffer_,
                         writable ? PyBUF_WRITABLE : PyBUF_SIMPLE) != 0) {
    throw py::error_already_set();
  }
}

View::~View() {
  if (exists()) PyBuffer_Release(&buffer_);
}

}  // namespace penstock::python
