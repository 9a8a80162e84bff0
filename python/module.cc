// The extension module penstock._penstock, which holds the classes in C++.

#include <pybind11/pybind11.h>

#include "python/bindings.h"
#include "python/closable.h"
#include "python/devices.h"
#include "python/gil.h"
#include "python/grpc_at_forks.h"
#include "python/signatures.h"

PYBIND11_MODULE(_penstock, module) {
  namespace python = penstock::python;
  python::BindTensor(module);
  python::BindDevices(module);
  python::BindCredentials(module);
  python::BindPaths(module);
  python::BindServer(module);
  python::BindClient(module);
  python::BindPending(module);
  python::BindPsReader(module);
  python::BindPsWorker(module);
  python::ShowParameters(module);
  module.attr("_knows_numpy_2") =
      PYBIND11_VERSION_MAJOR * 100 + PYBIND11_VERSION_MINOR >= 212;
  python::UseTransport();
  python::SurviveForks();
  python::WatchForks();
  python::PrepareForExit([] {
    python::CloseAll();
    python::StopServers();
  });
}
