#include "python/errors.h"

namespace penstock::python {

namespace py = pybind11;

void Throw(const absl::Status& status) {
  const py::object error =
      py::module_::import("penstock._errors")
          .attr("error_of")(absl::StatusCodeToString(status.code()),
                            std::string(status.message()));
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())),
                  error.ptr());
  throw py::error_already_set();
}

std::string TextOf(py::handle object) { return std::string(py::str(object)); }

}  // namespace penstock::python
