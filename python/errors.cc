#include "python/errors.h"

namespace penstock::python {

namespace py = pybind11;

namespace {

// Replaces invalid UTF-8, which a peer's text may have.
py::str Decoded(absl::string_view text) {
  PyObject* const decoded = PyUnicode_DecodeUTF8(
      text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
  if (decoded == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::str>(decoded);
}

}  // namespace

void Throw(const absl::Status& status) {
  const py::object error =
      py::module_::import("penstock._errors")
          .attr("error_of")(absl::StatusCodeToString(status.code()),
                            Decoded(status.message()));
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())),
                  error.ptr());
  throw py::error_already_set();
}

std::string TextOf(py::handle object) { return std::string(py::str(object)); }

}  // namespace penstock::python
