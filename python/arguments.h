// Reads arguments of a Python program, and names the one that is wrong.

#ifndef PENSTOCK_PYTHON_ARGUMENTS_H_
#define PENSTOCK_PYTHON_ARGUMENTS_H_

#include <pybind11/pybind11.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace penstock::python {

// All throw TypeError for another type, and InvalidArgument for a value that
// cannot be. Both texts begin with `name`.

// Takes what has __index__, but no bool.
uint64_t WholeOf(pybind11::handle value, const std::string& name,
                 uint64_t most);
// Takes a float, or what becomes one, but no str and no bool.
double NumberOf(pybind11::handle value, const std::string& name);
// None is for ever.
absl::Duration SecondsOf(pybind11::handle value, const std::string& name);
bool FlagOf(pybind11::handle value, const std::string& name);
std::string StrOf(pybind11::handle value, const std::string& name);
// A str, or a path-like object. None is the empty string.
std::string PathOf(pybind11::handle value, const std::string& name);
// An iterable, but no str.
std::vector<std::string> StrsOf(pybind11::handle value,
                                const std::string& name);
// A dict, or another mapping.
pybind11::dict DictOf(pybind11::handle value, const std::string& name);

// Throws TypeError: "NAME is VALUE, of type int: give WANTED".
[[noreturn]] void ThrowType(pybind11::handle value, const std::string& name,
                            const std::string& wanted);
// Throws InvalidArgument: "NAME is VALUE: give WANTED".
[[noreturn]] void ThrowValue(pybind11::handle value, const std::string& name,
                             const std::string& wanted);

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_ARGUMENTS_H_
