#include "python/paths.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "python/bindings.h"
#include "python/gil.h"
#include "transport/base/per_process.h"

namespace penstock::python {
namespace {

namespace py = pybind11;

// The channels of this process. The list of a forked child is empty at first.
struct Channels {
  absl::Mutex mu;
  std::vector<std::weak_ptr<grpc::Channel>> channels ABSL_GUARDED_BY(mu);
};

Channels& TheChannels() { return *base::PerProcess<Channels>::Get(); }

std::vector<std::shared_ptr<grpc::Channel>> LiveChannels() {
  Channels& all = TheChannels();
  std::vector<std::shared_ptr<grpc::Channel>> live;
  absl::MutexLock lock(&all.mu);
  for (const std::weak_ptr<grpc::Channel>& channel : all.channels) {
    if (auto shared = channel.lock()) live.push_back(std::move(shared));
  }
  return live;
}

}  // namespace

void Remember(const std::shared_ptr<grpc::Channel>& channel) {
  Channels& all = TheChannels();
  absl::MutexLock lock(&all.mu);
  all.channels.erase(
      std::remove_if(all.channels.begin(), all.channels.end(),
                     [](const auto& weak) { return weak.expired(); }),
      all.channels.end());
  all.channels.push_back(channel);
}

std::vector<PathReport> AllPaths() {
  std::vector<PathReport> reports;
  for (const std::shared_ptr<grpc::Channel>& channel : LiveChannels()) {
    for (PathReport& report : DescribePaths(*channel)) {
      reports.push_back(std::move(report));
    }
  }
  return reports;
}

void BindPaths(py::module_& module) {
  py::class_<PathReport>(module, "PathReport",
                         "The network path of one live connection. str() "
                         "returns one readable line.")
      .def_readonly("peer", &PathReport::peer,
                    "The peer's address, such as ipv4:127.0.0.1:50051.")
      .def_readonly("path", &PathReport::path,
                    "\"shm\", \"verbs\", \"tcp\" or \"http2\".")
      .def_readonly("detail", &PathReport::detail, "The parts of the path.")
      .def_readonly(
          "reason", &PathReport::reason,
          "The reason for not using a better path; empty for the best one.")
      .def_readonly("messages_sent", &PathReport::messages_sent)
      .def_readonly("messages_received", &PathReport::messages_received)
      .def_readonly("bytes_sent", &PathReport::bytes_sent)
      .def_readonly("bytes_received", &PathReport::bytes_received)
      .def("__str__", &PathReport::ToString)
      .def("__repr__", [](const PathReport& report) {
        return "<penstock.PathReport " + report.ToString() + ">";
      });
  module.def(
      "describe_paths",
      [] {
        std::vector<PathReport> reports = [] {
          Unlocked unlocked;
          return AllPaths();
        }();
        return reports;
      },
      "Returns a PathReport for each live connection of this process's "
      "clients. A client has no connection before its first call.");
}

}  // namespace penstock::python
