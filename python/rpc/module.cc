// The extension module penstock._rpc: transport/rpc for Python. Does not use
// gRPC.

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "python/gil.h"
#include "python/rpc/client.h"
#include "python/rpc/keepalive.h"
#include "python/rpc/payloads.h"
#include "python/rpc/reports.h"
#include "python/rpc/server.h"
#include "python/rpc/stream.h"
#include "python/rpc/waits.h"
#include "transport/base/token.h"

namespace py = pybind11;

PYBIND11_MODULE(_rpc, module) {
  namespace python = penstock::python;
  using Keepalive = python::KeepaliveArguments;
  py::class_<Keepalive>(module, "Keepalive")
      .def(py::init<>())
      .def_readwrite("time", &Keepalive::time)
      .def_readwrite("timeout", &Keepalive::timeout)
      .def_readwrite("permits_without_calls",
                     &Keepalive::permits_without_calls);
  python::BindPayloads(module);
  python::BindStreams(module);
  python::BindClient(module);
  python::BindServer(module);
  module.def("new_token", [] {
    const auto token = penstock::base::NewToken();
    if (!token.ok()) throw std::runtime_error(token.status().ToString());
    return py::bytes(*token);
  });
  module.def("open_reports", [] { return python::Reports::Get()->Open(); });
  // Waits for reports of a queue, and returns their numbers. Returns none when
  // the queue is closed.
  module.def("take_reports", [](uint64_t queue) {
    python::Unlocked unlocked;
    return python::Reports::Get()->Take(queue);
  });
  // Makes a queue for an event loop. Returns its number, and the descriptor
  // that is readable while the queue has numbers.
  module.def("open_readable_reports", [] {
    python::Reports* const reports = python::Reports::Get();
    const uint64_t queue = reports->OpenReadable();
    if (queue == 0) throw std::runtime_error("no descriptors are left");
    return py::make_tuple(queue, reports->DescriptorOf(queue));
  });
  module.def("take_ready_reports", [](uint64_t queue) {
    return python::Reports::Get()->TakeReady(queue);
  });
  module.def("close_reports",
             [](uint64_t queue) { python::Reports::Get()->Close(queue); });
  python::NoteMainThread();
  python::SurviveForks();
  python::PrepareForExit([] {});
}
