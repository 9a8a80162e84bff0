#include "grpcpp/server.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "grpcpp/server_builder.h"
#include "penstock/penstock.h"
#include "python/bindings.h"
#include "python/credentials.h"
#include "python/devices.h"
#include "python/errors.h"
#include "python/gil.h"
#include "python/grpc_at_forks.h"
#include "python/maker.h"
#include "tensor_service/service.h"
#include "tensor_service/status.h"
#include "tensor_service/store.h"
#include "transport/base/steady_notification.h"
#include "transport/base/steady_time.h"

namespace penstock::python {
namespace {

namespace py = pybind11;

// A store that is served on a port. No function needs the GIL. Thread-safe.
class Server {
 public:
  static absl::StatusOr<std::shared_ptr<Server>> Start(
      const std::string& address, size_t budget_bytes,
      std::shared_ptr<grpc::ServerCredentials> credentials,
      tensor::DeviceTensors device_tensors);
  // Stops the server, if Stop() was not called.
  ~Server() { Stop(absl::ZeroDuration()); }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int port() const { return port_; }

  // Returns FAILED_PRECONDITION in a forked child, which lacks the server's
  // threads.
  absl::Status CheckProcess() const {
    return maker_.IsParent() ? maker_.Refuse("the server") : absl::OkStatus();
  }
  bool is_parents() const { return maker_.IsParent(); }

  // Stops accepting calls, and cancels calls that still run after `grace`.
  // Returns when all calls have ended. A second call only waits for the first.
  void Stop(absl::Duration grace) ABSL_LOCKS_EXCLUDED(mu_);

  // Blocks until Stop() has been called, and returns true, or false after
  // `timeout`.
  bool WaitForStop(absl::Duration timeout) { return stopped_.WaitFor(timeout); }

 private:
  Server(size_t budget_bytes, tensor::DeviceTensors device_tensors)
      : store_(budget_bytes),
        service_(tensor::MakeTensorService(&store_, device_tensors)) {}

  const Maker maker_;
  tensor::TensorStore store_;
  const std::unique_ptr<grpc::Service> service_;
  int port_ = 0;
  base::SteadyNotification stopped_;
  absl::Mutex mu_;
  std::unique_ptr<grpc::Server> server_ ABSL_GUARDED_BY(mu_);
};

// Returns the running servers, which StopServers() stops. Guarded by the GIL.
std::set<std::weak_ptr<Server>, std::owner_less<>>& Running() {
  static auto* const running =
      new std::set<std::weak_ptr<Server>, std::owner_less<>>;
  return *running;
}

absl::StatusOr<std::shared_ptr<Server>> Server::Start(
    const std::string& address, size_t budget_bytes,
    std::shared_ptr<grpc::ServerCredentials> credentials,
    tensor::DeviceTensors device_tensors) {
  std::shared_ptr<Server> server(new Server(budget_bytes, device_tensors));
  grpc::ServerBuilder builder;
  Enable(&builder);
  tensor::AllowUnlimitedMessages(&builder);
  // Refuses to share the port. Otherwise two servers could have the same port,
  // and clients would only sometimes find their tensors.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddListeningPort(address, std::move(credentials), &server->port_);
  builder.RegisterService(server->service_.get());
  absl::MutexLock lock(&server->mu_);
  server->server_ = builder.BuildAndStart();
  if (server->server_ == nullptr) {
    return absl::UnavailableError(absl::StrCat(
        "listen on ", address, ": cannot; the log on standard error has the ",
        "reason. Port 0 takes any that is free"));
  }
  return server;
}

void Server::Stop(absl::Duration grace) {
  absl::MutexLock lock(&mu_);
  if (server_ == nullptr) return;
  server_->Shutdown(absl::ToChronoTime(absl::Now() + grace));
  server_->Wait();
  server_ = nullptr;
  stopped_.Notify();
}

void CheckSeconds(const char* name, double seconds) {
  if (!std::isnan(seconds)) return;
  Throw(absl::InvalidArgumentError(
      absl::StrCat(name, " is nan: give seconds, as a number")));
}

// The Python object of a server, which may be collected on any thread.
class ServerObject {
 public:
  explicit ServerObject(std::shared_ptr<Server> server)
      : server_(std::move(server)) {
    Running().insert(server_);
  }
  ~ServerObject() {
    Running().erase(server_);
    if (server_->is_parents()) {
      new std::shared_ptr<Server>(std::move(server_));  // intentionally leaked
      return;
    }
    Stop(0);
    Unlocked unlocked;
    server_.reset();  // frees the stored tensors
  }
  ServerObject(const ServerObject&) = delete;
  ServerObject& operator=(const ServerObject&) = delete;

  int port() const { return server_->port(); }

  void Stop(double grace) {
    CheckSeconds("grace", grace);
    CheckProcess();
    Unlocked unlocked;
    server_->Stop(absl::Seconds(grace));
  }

  bool Wait(std::optional<double> timeout) {
    if (timeout) CheckSeconds("timeout", *timeout);
    CheckProcess();
    const absl::Time end = timeout ? base::SteadyNow() + absl::Seconds(*timeout)
                                   : absl::InfiniteFuture();
    bool is_stopped = false;
    do {
      {
        Unlocked unlocked;
        is_stopped = server_->WaitForStop(
            std::min(end - base::SteadyNow(), absl::Milliseconds(100)));
      }
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    } while (!is_stopped && base::SteadyNow() < end);
    return is_stopped;
  }

  // Stops the server at the end of a `with` block. In a forked child, a block
  // that the parent entered ends without a stop.
  void StopAtEndOfBlock() {
    if (!server_->is_parents()) Stop(0);
  }

 private:
  void CheckProcess() const {
    const absl::Status status = server_->CheckProcess();
    if (!status.ok()) Throw(status);
  }

  std::shared_ptr<Server> server_;
};

std::unique_ptr<ServerObject> Start(const std::string& address,
                                    size_t budget_bytes,
                                    const ServerCredentials* credentials,
                                    bool keep_on_device) {
  CheckGrpc(absl::StrCat("a server on ", address));
  if (keep_on_device) ValueOf(NeedDevices("tensors that are to stay there"));
  auto secured = credentials == nullptr ? grpc::InsecureServerCredentials()
                                        : credentials->credentials;
  auto server = [&] {
    Unlocked unlocked;
    return Server::Start(address, budget_bytes, std::move(secured),
                         keep_on_device ? tensor::DeviceTensors::kKeep
                                        : tensor::DeviceTensors::kToHost);
  }();
  return std::make_unique<ServerObject>(ValueOf(std::move(server)));
}

constexpr char kDoc[] = R"(Keeps named tensors, and serves them on a port.

The constructor starts the server. `address` is "host:port"; port 0 selects a
free port. The server holds up to `budget_bytes` of tensors, and refuses more
with ResourceExhausted. `credentials` are ServerCredentials; None means no
security.

The server accepts gRPC clients of any language. Clients with Penstock use
shared memory or RDMA where possible.

With `keep_on_device`, a tensor that a client puts from a GPU of this machine
is copied to memory of that GPU, if the transport reaches it. Otherwise tensors
are copied to the CPU's memory.

The server stops at the end of a `with` block, when the object is collected,
and when the program exits.)";

}  // namespace

void StopServers() {
  std::set<std::weak_ptr<Server>, std::owner_less<>> running;
  running.swap(Running());
  Unlocked unlocked;
  for (const std::weak_ptr<Server>& weak : running) {
    auto server = weak.lock();
    if (server == nullptr || server->is_parents()) continue;
    server->Stop(absl::ZeroDuration());
  }
}

void BindServer(py::module_& module) {
  py::class_<ServerObject>(module, "TensorServer", kDoc)
      .def(py::init(&Start), py::arg("address") = "127.0.0.1:0", py::kw_only(),
           py::arg("budget_bytes") = size_t{1} << 30,
           py::arg("credentials") = py::none(),
           py::arg("keep_on_device") = false)
      .def_property_readonly("port", &ServerObject::port,
                             "The port that the server listens on.")
      .def("stop", &ServerObject::Stop, py::arg("grace") = 0.0,
           "Stops the server: accepts no more calls, cancels calls that still "
           "run after `grace` seconds, and returns when all calls have ended. "
           "The tensors are freed with the object.")
      .def("wait", &ServerObject::Wait, py::arg("timeout") = py::none(),
           "Waits until stop() is called, or for `timeout` seconds. Returns "
           "true if stop() was called. Ctrl-C interrupts the wait.")
      .def("__enter__", [](const py::object& self) { return self; })
      .def("__exit__", [](ServerObject& self, const py::args&) {
        self.StopAtEndOfBlock();
      });
}

}  // namespace penstock::python
