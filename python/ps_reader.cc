#include <pybind11/pybind11.h>

#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "ps/client/reader.h"
#include "python/arguments.h"
#include "python/bindings.h"
#include "python/closable.h"
#include "python/errors.h"
#include "python/gil.h"
#include "python/grpc_at_forks.h"
#include "python/owned.h"
#include "python/pending.h"
#include "python/ps_connect.h"
#include "python/ps_model.h"
#include "python/ps_values.h"

namespace penstock::python {
namespace {

namespace py = pybind11;

// A connection to the servers, and its reader. Destroy this object Unlocked.
struct Viewer {
  explicit Viewer(std::shared_ptr<const ps::TrainingConnection> to)
      : connection(std::move(to)), reader(connection) {}

  const std::shared_ptr<const ps::TrainingConnection> connection;
  ps::Reader reader;
};

// The implementation of Python's class _PsReader.
class PsReader final : public Closable {
 public:
  PsReader(const std::string& name, std::unique_ptr<Viewer> viewer)
      : model_(viewer->connection->model()), viewer_(name, std::move(viewer)) {}
  ~PsReader() override { Close(); }
  PsReader(const PsReader&) = delete;
  PsReader& operator=(const PsReader&) = delete;

  std::shared_ptr<Pending> StartPull(py::handle step, py::handle dense,
                                     py::handle rows, py::handle dtype,
                                     py::handle timeout, uint64_t number) {
    const uint64_t clock =
        WholeOf(step, "step", std::numeric_limits<uint64_t>::max());
    const ps::PullSpec spec = PullSpecOf(dense, rows, dtype);
    const absl::Duration limit = SecondsOf(timeout, "timeout");
    auto pending = std::make_shared<Pending>(number);
    Share([&](Viewer& viewer) {
      viewer.reader.StartPull(clock, spec, limit, EndPull(pending, spec));
    });
    return pending;
  }

  py::tuple Tables() const { return TablesOf(model_); }
  py::tuple Checkpoint(py::handle incremental, py::handle keep,
                       py::handle timeout) {
    std::shared_ptr<const ps::TrainingConnection> connection;
    Share([&](const Viewer& viewer) { connection = viewer.connection; });
    return TakeCheckpoint(std::move(connection), incremental, keep, timeout);
  }

  void Close() override {
    Unlocked unlocked;
    viewer_.Take().reset();
  }

 private:
  // Calls `use` Unlocked. Throws if the reader is closed.
  template <typename Use>
  void Share(const Use& use) {
    const absl::Status status = [&] {
      Unlocked unlocked;
      return viewer_.Share(use);
    }();
    if (!status.ok()) Throw(status);
  }

  const ps::Model model_;
  Owned<Viewer> viewer_;
};

std::shared_ptr<PsReader> Open(const py::dict& arguments) {
  const PsServers servers = PsServersOf(arguments);
  CheckGrpc("reader of " + absl::StrJoin(servers.addresses, ","));
  const absl::Duration timeout = SecondsOf(arguments["timeout"], "timeout");
  const bool wait = FlagOf(arguments["wait_for_values"], "wait_for_values");
  auto viewer = ValueOf(RunInterruptibly(
      [servers, timeout, wait]() -> absl::StatusOr<std::unique_ptr<Viewer>> {
        auto channels = Connect(servers);
        if (!channels.ok()) return channels.status();
        auto connect = Connector(servers);
        if (!connect.ok()) return connect.status();
        auto connection = ps::TrainingConnection::Open(
            {*channels, timeout, wait, *std::move(connect)});
        if (!connection.ok()) return connection.status();
        return std::make_unique<Viewer>(*std::move(connection));
      }));
  auto reader = std::make_shared<PsReader>(
      "reader of " + absl::StrJoin(servers.addresses, ","), std::move(viewer));
  CloseAtExit(reader);
  return reader;
}

}  // namespace

void BindPsReader(py::module_& module) {
  py::class_<PsReader, std::shared_ptr<PsReader>>(module, "_PsReader")
      .def(py::init(&Open), py::arg("arguments"))
      .def("start_pull", &PsReader::StartPull)
      .def("tables", &PsReader::Tables)
      .def("checkpoint", &PsReader::Checkpoint)
      .def("close", &PsReader::Close);
}

}  // namespace penstock::python
