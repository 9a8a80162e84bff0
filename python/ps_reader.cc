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
#include "python/owned.h"
#include "python/pending.h"
#include "python/ps_connect.h"
#include "python/ps_model.h"
#include "python/ps_values.h"

namespace penstock::python {
namespace {

namespace py = pybind11;

// Python's _PsReader.
class PsReader final : public Closable {
 public:
  PsReader(std::shared_ptr<const ps::Connection> connection,
           const std::string& name)
      : connection_(std::move(connection)),
        reader_(name, std::make_unique<ps::Reader>(connection_)) {}
  ~PsReader() override {
    Close();
    Unlocked unlocked;
    connection_.reset();
  }
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
    const absl::Status status = [&] {
      Unlocked unlocked;
      return reader_.Share([&](ps::Reader& reader) {
        reader.StartPull(clock, spec, limit, EndPull(pending, spec));
      });
    }();
    if (!status.ok()) Throw(status);
    return pending;
  }

  py::tuple Tables() const { return TablesOf(connection_->model()); }
  py::tuple Checkpoint(py::handle incremental, py::handle keep,
                       py::handle timeout) const {
    return TakeCheckpoint(connection_, incremental, keep, timeout);
  }

  void Close() override {
    Unlocked unlocked;
    reader_.Take().reset();
  }

 private:
  std::shared_ptr<const ps::Connection> connection_;
  Owned<ps::Reader> reader_;
};

std::shared_ptr<PsReader> Open(const py::dict& arguments) {
  const PsServers servers = PsServersOf(arguments);
  const absl::Duration timeout = SecondsOf(arguments["timeout"], "timeout");
  const bool wait = FlagOf(arguments["wait_for_values"], "wait_for_values");
  auto connection = ValueOf(RunInterruptibly(
      [servers, timeout,
       wait]() -> absl::StatusOr<std::shared_ptr<const ps::Connection>> {
        auto channels = Connect(servers);
        if (!channels.ok()) return channels.status();
        return ps::Connection::Open({*channels, timeout, wait});
      }));
  auto reader = std::make_shared<PsReader>(
      std::move(connection),
      "reader of " + absl::StrJoin(servers.addresses, ","));
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
