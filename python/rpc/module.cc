// The extension module penstock._rpc: transport/rpc for Python. Knows no gRPC.

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "python/gil.h"
#include "python/rpc/client.h"
#include "python/rpc/reports.h"
#include "python/rpc/server.h"
#include "python/rpc/stream.h"
#include "python/rpc/waits.h"
#include "transport/base/token.h"

namespace py = pybind11;

PYBIND11_MODULE(_rpc, module) {
  namespace python = penstock::python;
  python::BindStreams(module);
  python::BindClient(module);
  python::BindServer(module);
  module.def("new_token", [] {
    const auto token = penstock::base::NewToken();
    if (!token.ok()) throw std::runtime_error(token.status().ToString());
    return py::bytes(*token);
  });
  // Waits for reports, and returns their numbers.
  module.def("take_reports", [] {
    python::Unlocked unlocked;
    return python::Reports::Get()->Take();
  });
  python::NoteMainThread();
  python::SurviveForks();
  python::PrepareForExit([] {});
}
