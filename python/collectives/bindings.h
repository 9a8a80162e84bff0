// Declares the functions that add the parts of the module
// penstock._collectives.

#ifndef PENSTOCK_PYTHON_COLLECTIVES_BINDINGS_H_
#define PENSTOCK_PYTHON_COLLECTIVES_BINDINGS_H_

#include <pybind11/pybind11.h>

namespace penstock::python {

void BindForming(pybind11::module_& module);
void BindGroup(pybind11::module_& module);
void BindLentMemory(pybind11::module_& module);
void BindPoolArray(pybind11::module_& module);

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_COLLECTIVES_BINDINGS_H_
