// Reads arguments of a Python program; errors name the argument.

#ifndef PENSTOCK_PYTHON_ARGUMENTS_H_
#define PENSTOCK_PYTHON_ARGUMENTS_H_

#include <pybind11/pybind11.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace penstock::python {

// All functions here throw TypeError for a wrong type and InvalidArgument for a
// wrong value. The error texts begin with `name`.

// Accepts objects with __index__, but no bool.
uint64_t WholeOf(pybind11::handle value, const std::string& name,
                 uint64_t most);
// Accepts a float or an object that converts to one, but no str and no bool.
double NumberOf(pybind11::handle value, const std::string& name);
// Converts a number of seconds. None means no limit.
absl::Duration SecondsOf(pybind11::handle value, const std::string& name);
bool FlagOf(pybind11::handle value, const std::string& name);
std::string StrOf(pybind11::handle value, const std::string& name);
// Accepts a str or a path-like object. None becomes the empty string.
std::string PathOf(pybind11::handle value, const std::string& name);
// Accepts an iterable, but no str.
std::vector<std::string> StrsOf(pybind11::handle value,
                                const std::string& name);
// Accepts a dict or another mapping.
pybind11::dict DictOf(pybind11::handle value, const std::string& name);

// Throws TypeError: "NAME is VALUE, of type int: give WANTED".
[[noreturn]] void ThrowType(pybind11::handle value, const std::string& name,
                            const std::string& wanted);
// Throws InvalidArgument: "NAME is VALUE: give WANTED".
[[noreturn]] void ThrowValue(pybind11::handle value, const std::string& name,
                             const std::string& wanted);

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_ARGUMENTS_H_
