// Converts statuses to Python's exceptions.

#ifndef PENSTOCK_PYTHON_ERRORS_H_
#define PENSTOCK_PYTHON_ERRORS_H_

#include <pybind11/pybind11.h>

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace penstock::python {

// Throws the exception of penstock/_errors.py for the code of `status`, which
// is not OK. Only the Python binding throws, because Python expects exceptions.
// Call it with the GIL.
[[noreturn]] void Throw(const absl::Status& status);

// Returns the value, or throws.
template <typename T>
T ValueOf(absl::StatusOr<T> value) {
  if (!value.ok()) Throw(value.status());
  return *std::move(value);
}

// Returns str(object), for messages.
std::string TextOf(pybind11::handle object);

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_ERRORS_H_
