// Declares the functions that add the parts of the module penstock._penstock.

#ifndef PENSTOCK_PYTHON_BINDINGS_H_
#define PENSTOCK_PYTHON_BINDINGS_H_

#include <pybind11/pybind11.h>

namespace penstock::python {

// Add classes and functions to the module. Their docstrings are the user's
// documentation. penstock/_penstock.pyi has their types.
void BindTensor(pybind11::module_& module);
void BindDevices(pybind11::module_& module);
void BindCredentials(pybind11::module_& module);
void BindPaths(pybind11::module_& module);
void BindServer(pybind11::module_& module);
void BindClient(pybind11::module_& module);
void BindPending(pybind11::module_& module);
void BindPsReader(pybind11::module_& module);
void BindPsWorker(pybind11::module_& module);

// Stops all running servers.
void StopServers();

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_BINDINGS_H_
