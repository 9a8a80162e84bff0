#include "python/signatures.h"

#include <pybind11/pybind11.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace py = pybind11;

namespace penstock::python {
namespace {

// Splits at the commas outside of brackets and quotes.
std::vector<absl::string_view> SplitParameters(absl::string_view text) {
  std::vector<absl::string_view> parts;
  int depth = 0;
  bool quoted = false;
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\'') quoted = !quoted;
    if (quoted) continue;
    if (c == '[' || c == '(') ++depth;
    if (c == ']' || c == ')') --depth;
    if (c != ',' || depth > 0) continue;
    parts.push_back(text.substr(begin, i - begin));
    begin = i + 1;
  }
  if (begin < text.size()) parts.push_back(text.substr(begin));
  return parts;
}

// Returns "name=default" for "name: type = default". Python accepts no types
// here; _penstock.pyi has the types.
std::string WithoutType(absl::string_view parameter) {
  parameter = absl::StripAsciiWhitespace(parameter);
  const size_t name_end = parameter.find(": ");
  if (name_end == absl::string_view::npos) return std::string(parameter);
  const size_t value = parameter.rfind(" = ");
  return absl::StrCat(parameter.substr(0, name_end),
                      value == absl::string_view::npos
                          ? ""
                          : absl::StrCat("=", parameter.substr(value + 3)));
}

// The parts of pybind11's docstring "name(parameters) -> type\n\ntext".
struct Doc {
  std::vector<std::string> parameters;  // without types
  absl::string_view text;
};

// Returns nullopt if pybind11 has not written `doc`, or for several overloads.
std::optional<Doc> Parse(absl::string_view name, absl::string_view doc) {
  const size_t line = std::min(doc.find('\n'), doc.size());
  const size_t end = doc.substr(0, line).rfind(") -> ");
  if (end == absl::string_view::npos || !absl::ConsumePrefix(&doc, name) ||
      !absl::ConsumePrefix(&doc, "(")) {
    return std::nullopt;
  }
  Doc parsed;
  const size_t consumed = name.size() + 1;
  for (absl::string_view part :
       SplitParameters(doc.substr(0, end - consumed))) {
    parsed.parameters.push_back(WithoutType(part));
  }
  doc.remove_prefix(line - consumed);
  parsed.text = absl::StripLeadingAsciiWhitespace(doc);
  return parsed;
}

// Returns a docstring in the form that Python reads.
std::string ReadableDoc(absl::string_view name,
                        const std::vector<std::string>& parameters,
                        absl::string_view text) {
  return absl::StrCat(name, "(", absl::StrJoin(parameters, ", "), ")\n--\n\n",
                      text);
}

// Returns the definition of a function or method, or null for anything else.
PyMethodDef* DefinitionOf(const py::object& member) {
  PyObject* function = member.ptr();
  if (PyInstanceMethod_Check(function)) {
    function = PyInstanceMethod_GET_FUNCTION(function);
  }
  return PyCFunction_Check(function)
             ? reinterpret_cast<PyCFunctionObject*>(function)->m_ml
             : nullptr;
}

void ShowFunction(const py::object& member) {
  PyMethodDef* const definition = DefinitionOf(member);
  if (definition == nullptr || definition->ml_doc == nullptr) return;
  const auto doc = Parse(definition->ml_name, definition->ml_doc);
  if (!doc) return;
  const std::string readable =
      ReadableDoc(definition->ml_name, doc->parameters, doc->text);
  // Frees the text by free(), because pybind11 allocates it by malloc().
  std::free(const_cast<char*>(definition->ml_doc));
  definition->ml_doc = strdup(readable.c_str());
}

// Gives the class the parameters of its constructor, without `self`. The class
// keeps its __doc__, which Python took from tp_doc earlier.
void ShowConstructor(const py::object& type) {
  const PyMethodDef* const definition = DefinitionOf(type.attr("__init__"));
  if (definition == nullptr) return;
  auto doc = Parse("__init__", definition->ml_doc);
  if (!doc) return;
  doc->parameters.erase(doc->parameters.begin());
  const std::string readable =
      ReadableDoc(py::cast<std::string>(type.attr("__name__")), doc->parameters,
                  py::cast<std::string>(py::str(type.attr("__doc__"))));
  auto* const memory = static_cast<char*>(PyObject_Malloc(readable.size() + 1));
  if (memory == nullptr) return;
  memcpy(memory, readable.c_str(), readable.size() + 1);
  auto* const object = reinterpret_cast<PyTypeObject*>(type.ptr());
  PyObject_Free(const_cast<char*>(object->tp_doc));
  object->tp_doc = memory;
}

void ShowClass(const py::object& type) {
  ShowConstructor(type);
  for (const auto& name : py::list(type.attr("__dict__"))) {
    ShowFunction(type.attr(name));
  }
}

}  // namespace

void ShowParameters(const py::module_& module) {
  for (const auto& name : py::list(module.attr("__dict__"))) {
    const py::object member = module.attr(name);
    ShowFunction(member);
    if (PyType_Check(member.ptr())) ShowClass(member);
  }
}

}  // namespace penstock::python
