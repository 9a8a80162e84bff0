#include "python/arguments.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "python/errors.h"

namespace penstock::python {
namespace {

namespace py = pybind11;

constexpr size_t kShownBytes = 80;

// Returns the value as a program would write it, truncated if long.
std::string Shown(py::handle value) {
  std::string text = std::string(py::repr(value));
  if (text.size() > kShownBytes) text = text.substr(0, kShownBytes) + "...";
  return text;
}

}  // namespace

void ThrowType(py::handle value, const std::string& name,
               const std::string& wanted) {
  const std::string type = TextOf(py::type::of(value).attr("__name__"));
  throw py::type_error(absl::StrCat(name, " is ", Shown(value), ", of type ",
                                    type, ": give ", wanted));
}

void ThrowValue(py::handle value, const std::string& name,
                const std::string& wanted) {
  Throw(absl::InvalidArgumentError(
      absl::StrCat(name, " is ", Shown(value), ": give ", wanted)));
}

uint64_t WholeOf(py::handle value, const std::string& name, uint64_t most) {
  const std::string wanted = absl::StrCat("a whole number from 0 to ", most);
  if (PyIndex_Check(value.ptr()) == 0 || py::isinstance<py::bool_>(value)) {
    ThrowType(value, name, wanted);
  }
  const auto index =
      py::reinterpret_steal<py::object>(PyNumber_Index(value.ptr()));
  if (!index) throw py::error_already_set();
  const uint64_t whole = PyLong_AsUnsignedLongLong(index.ptr());
  const bool is_out = PyErr_Occurred() != nullptr;
  PyErr_Clear();
  if (is_out || whole > most) ThrowValue(value, name, wanted);
  return whole;
}

double NumberOf(py::handle value, const std::string& name) {
  const bool is_other =
      py::isinstance<py::str>(value) || py::isinstance<py::bool_>(value);
  const double number = is_other ? 0 : PyFloat_AsDouble(value.ptr());
  if (is_other || PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    ThrowType(value, name, "a number");
  }
  return number;
}

absl::Duration SecondsOf(py::handle value, const std::string& name) {
  if (value.is_none()) return absl::InfiniteDuration();
  const double seconds = NumberOf(value, name);
  if (seconds > 0) return absl::Seconds(seconds);
  ThrowValue(value, name, "a positive number of seconds, or None for ever");
}

bool FlagOf(py::handle value, const std::string& name) {
  if (!py::isinstance<py::bool_>(value)) ThrowType(value, name, "a bool");
  return value.cast<bool>();
}

std::string StrOf(py::handle value, const std::string& name) {
  if (!py::isinstance<py::str>(value)) ThrowType(value, name, "a str");
  Py_ssize_t size = 0;
  const char* const text = PyUnicode_AsUTF8AndSize(value.ptr(), &size);
  if (text == nullptr) {
    PyErr_Clear();
    ThrowValue(value, name, "a text that has a form in UTF-8");
  }
  return std::string(text, static_cast<size_t>(size));
}

std::string PathOf(py::handle value, const std::string& name) {
  if (value.is_none()) return "";
  auto path = py::reinterpret_steal<py::object>(PyOS_FSPath(value.ptr()));
  if (!path) {
    PyErr_Clear();
    ThrowType(value, name, "the path of a file");
  }
  std::string text = StrOf(path, name);
  if (text.empty()) ThrowValue(value, name, "the path of a file, or None");
  return text;
}

std::vector<std::string> StrsOf(py::handle value, const std::string& name) {
  const std::string wanted = "a list of str, such as [\"x\"]";
  if (py::isinstance<py::str>(value) || !py::hasattr(value, "__iter__")) {
    ThrowType(value, name, wanted);
  }
  std::vector<std::string> texts;
  for (py::handle item : py::iter(value)) {
    texts.push_back(StrOf(item, absl::StrCat(name, "[", texts.size(), "]")));
  }
  return texts;
}

py::dict DictOf(py::handle value, const std::string& name) {
  if (py::isinstance<py::dict>(value)) {
    return py::reinterpret_borrow<py::dict>(value);
  }
  if (PyMapping_Check(value.ptr()) == 0 || !py::hasattr(value, "keys")) {
    ThrowType(value, name, "a dict by the names of tables");
  }
  return py::dict(py::reinterpret_borrow<py::object>(value));
}

}  // namespace penstock::python
