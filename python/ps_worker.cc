#include <pybind11/pybind11.h>

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "ps/client/define.h"
#include "ps/client/reattach.h"
#include "ps/client/worker.h"
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

constexpr uint64_t kMostRank = 65535;
constexpr uint64_t kMostStep = std::numeric_limits<uint64_t>::max();

// The arguments of a worker, without Python objects.
struct Start {
  PsServers servers;
  std::optional<ps::Model> model;  // only for the chief
  tensor::Bundle values;
  absl::Duration timeout;
  ps::Worker::Options options;  // without a connection
};

// A worker that has joined a training. The destructor leaves the training, so
// that other workers do not wait for this one, even if Ctrl-C came while it
// joined. Destroy this object Unlocked.
struct Member {
  ~Member() {
    if (worker != nullptr) worker->Leave();
  }

  std::shared_ptr<const ps::TrainingConnection> connection;
  std::unique_ptr<ps::Worker> worker;
};

Start StartOf(const py::dict& arguments) {
  Start start;
  start.servers = PsServersOf(arguments);
  ps::Worker::Options& options = start.options;
  options.rank =
      static_cast<uint32_t>(WholeOf(arguments["rank"], "rank", kMostRank));
  const py::object model = arguments["model"];
  if (!model.is_none()) start.model = ModelOf(model);
  start.values = BundleOf(arguments["values"], "values");
  if (options.rank != 0 && (start.model || !arguments["values"].is_none())) {
    Throw(absl::InvalidArgumentError(absl::StrCat(
        start.model ? "model" : "values", ": the worker of rank 0 gives it, ",
        "and this is rank ", options.rank)));
  }
  start.timeout = SecondsOf(arguments["timeout"], "timeout");
  options.join_timeout = start.timeout;
  options.pull_timeout = SecondsOf(arguments["pull_timeout"], "pull_timeout");
  options.push_timeout = SecondsOf(arguments["push_timeout"], "push_timeout");
  options.coder = CodersOf(arguments["compression"], options.rank);
  return start;
}

// Defines the model, or waits for the chief's model.
absl::StatusOr<ps::Defined> Connected(const Start& start) {
  auto channels = Connect(start.servers);
  if (!channels.ok()) return channels.status();
  auto connect = Connector(start.servers);
  if (!connect.ok()) return connect.status();
  if (start.model) {
    return ps::Define({*channels, start.servers.addresses, *start.model,
                       start.timeout, absl::nullopt, *std::move(connect)});
  }
  auto connection = ps::TrainingConnection::Open(
      {*channels, start.timeout, true, *std::move(connect)});
  if (!connection.ok()) return connection.status();
  ps::Defined defined;
  defined.connection = *std::move(connection);
  return defined;
}

absl::Status CheckCompression(const ps::Model& model,
                              const std::vector<std::string>& tables) {
  for (const std::string& name : tables) {
    const ps::TableSpec* table = model.Find(name);
    if (table != nullptr && table->is_dense()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "compression of ", name, ": the model has no dense table of that ",
        "name; gradients of sparse ones are sent as they are"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Member>> Run(
    Start start, const std::vector<std::string>& compressed) {
  absl::StatusOr<ps::Defined> defined = Connected(start);
  if (!defined.ok()) return defined.status();
  absl::Status status =
      CheckCompression(defined->connection->model(), compressed);
  if (!status.ok()) return status;
  start.options.connection = defined->connection;
  auto worker = ps::Worker::Join(std::move(start.options));
  if (!worker.ok()) return worker.status();
  auto member = std::make_unique<Member>();
  member->connection = defined->connection;
  member->worker = *std::move(worker);
  if (start.model && defined->wants_values) {
    status = member->worker->Initialize(start.values);
    if (!status.ok()) {
      return absl::Status(status.code(),
                          absl::StrCat("values: ", status.message()));
    }
  }
  return member;
}

uint64_t RestoredStep(const ps::TrainingConnection& connection) {
  const auto& cut = connection.begun().cut;
  return cut.has_value() ? cut->step() : 0;
}

// Returns the status that was thrown as an exception with this code and text.
absl::Status ThrownStatus(const std::string& code, const std::string& text) {
  for (const absl::StatusCode each :
       {absl::StatusCode::kAborted, absl::StatusCode::kDataLoss}) {
    if (absl::StatusCodeToString(each) == code) return {each, text};
  }
  return absl::UnknownError(text);
}

// The implementation of Python's class _PsWorker.
class PsWorker final : public Closable {
 public:
  PsWorker(const std::string& name, std::unique_ptr<Member> member)
      : name_(name),
        model_(member->connection->model()),
        clock_(member->worker->clock()),
        restored_step_(RestoredStep(*member->connection)),
        member_(name, std::move(member)) {}
  ~PsWorker() override { Close(); }
  PsWorker(const PsWorker&) = delete;
  PsWorker& operator=(const PsWorker&) = delete;

  std::shared_ptr<Pending> StartPull(py::handle step, py::handle dense,
                                     py::handle rows, py::handle dtype,
                                     uint64_t number) {
    const uint64_t clock = WholeOf(step, "step", kMostStep);
    const ps::PullSpec spec = PullSpecOf(dense, rows, dtype);
    auto pending = std::make_shared<Pending>(number);
    Check([&] {
      return member_.Share([&](Member& member) {
        member.worker->StartPull(clock, spec, EndPull(pending, spec));
      });
    });
    return pending;
  }

  std::shared_ptr<Pending> StartPush(py::handle step, py::handle gradients,
                                     py::handle rows, uint64_t number) {
    const uint64_t clock = WholeOf(step, "step", kMostStep);
    const ps::StepGradients all = GradientsOf(gradients, rows);
    auto pending = std::make_shared<Pending>(number);
    // Pushes through Alone(), because only one thread at a time may push.
    Check([&] {
      return member_.Alone([&](Member& member) {
        member.worker->StartPush(clock, all, EndPush(pending));
      });
    });
    return pending;
  }

  uint64_t clock() const { return clock_; }
  uint64_t restored_step() const { return restored_step_; }
  py::tuple Tables() const { return TablesOf(model_); }
  py::tuple Checkpoint(py::handle incremental, py::handle keep,
                       py::handle timeout) {
    std::shared_ptr<const ps::TrainingConnection> connection;
    Check([&] {
      return member_.Share(
          [&](const Member& member) { connection = member.connection; });
    });
    return TakeCheckpoint(std::move(connection), incremental, keep, timeout);
  }

  // Returns a worker that continues after a call had this error; see
  // ps::Reattach(). Returns null if the error has another cause.
  std::shared_ptr<PsWorker> Reattach(const std::string& code,
                                     const std::string& text) {
    ps::Worker::Options options;
    Check([&] {
      return member_.Share(
          [&](const Member& member) { options = member.worker->options(); });
    });
    const absl::Status error = ThrownStatus(code, text);
    auto member = RunInterruptibly(
        [options, error]() -> absl::StatusOr<std::unique_ptr<Member>> {
          auto worker = ps::Reattach(options, error);
          if (!worker.ok()) return worker.status();
          auto member = std::make_unique<Member>();
          member->worker = *std::move(worker);
          member->connection = member->worker->options().connection;
          return member;
        });
    if (member.status() == error) return nullptr;
    auto worker = std::make_shared<PsWorker>(name_, ValueOf(std::move(member)));
    CloseAtExit(worker);
    return worker;
  }

  void Close() override {
    Unlocked unlocked;
    member_.Take().reset();
  }

 private:
  template <typename Call>
  static void Check(const Call& call) {
    const absl::Status status = [&call] {
      Unlocked unlocked;
      return call();
    }();
    if (!status.ok()) Throw(status);
  }

  const std::string name_;
  const ps::Model model_;
  const uint64_t clock_;
  const uint64_t restored_step_;
  Owned<Member> member_;
};

std::shared_ptr<PsWorker> Join(const py::dict& arguments) {
  Start start = StartOf(arguments);
  std::vector<std::string> compressed;
  const py::object compression = arguments["compression"];
  if (!compression.is_none()) {
    compressed = StrsOf(DictOf(compression, "compression"), "compression");
  }
  const std::string name =
      absl::StrCat("worker ", start.options.rank, " of ",
                   absl::StrJoin(start.servers.addresses, ","));
  CheckGrpc(name);
  auto member = ValueOf(
      RunInterruptibly([start = std::move(start), compressed]() mutable {
        return Run(std::move(start), compressed);
      }));
  auto worker = std::make_shared<PsWorker>(name, std::move(member));
  CloseAtExit(worker);
  return worker;
}

}  // namespace

void BindPsWorker(py::module_& module) {
  py::class_<PsWorker, std::shared_ptr<PsWorker>>(module, "_PsWorker")
      .def(py::init(&Join), py::arg("arguments"))
      .def("start_pull", &PsWorker::StartPull)
      .def("start_push", &PsWorker::StartPush)
      .def("clock", &PsWorker::clock)
      .def("restored_step", &PsWorker::restored_step)
      .def("tables", &PsWorker::Tables)
      .def("checkpoint", &PsWorker::Checkpoint)
      .def("reattach", &PsWorker::Reattach)
      .def("close", &PsWorker::Close);
}

}  // namespace penstock::python
