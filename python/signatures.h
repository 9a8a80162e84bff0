// The parameters of the module's functions, for help() and inspect.signature().

#ifndef PENSTOCK_PYTHON_SIGNATURES_H_
#define PENSTOCK_PYTHON_SIGNATURES_H_

#include <pybind11/pybind11.h>

namespace penstock::python {

// Makes inspect.signature() return the parameters of all functions, methods and
// constructors of the module. pybind11 writes the parameters only into
// docstrings, in a form that Python cannot read. Call at the end of the
// module's initialization, with pybind11's signatures enabled.
void ShowParameters(const pybind11::module_& module);

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_SIGNATURES_H_
