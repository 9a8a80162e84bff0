// The extension module penstock._penstock.

#include <pybind11/pybind11.h>

#include "python/bindings.h"
#include "python/gil.h"

PYBIND11_MODULE(_penstock, module) {
  // The types are in _penstock.pyi.
  pybind11::options options;
  options.disable_function_signatures();
  namespace python = penstock::python;
  python::BindTensor(module);
  python::BindCredentials(module);
  python::BindPaths(module);
  python::BindServer(module);
  python::BindClient(module);
  python::PrepareForExit(python::StopServers);
}
