#include "python/rpc/server.h"

#include <stdexcept>
#include <utility>
#include <vector>

#include "python/gil.h"
#include "python/rpc/hello.h"
#include "python/rpc/monitor.h"
#include "python/rpc/payloads.h"
#include "python/rpc/reports.h"
#include "python/rpc/spin.h"
#include "python/rpc/stream.h"
#include "transport/base/steady_time.h"

namespace penstock::python {
namespace {

namespace py = pybind11;

// The time for which a thread that has handled a call waits for another one. A
// client that calls again immediately does so within this time.
constexpr absl::Duration kLinger =
    absl::Nanoseconds(progress::SpinPolicy::kMaxNanos);

}  // namespace

ReceivedCall::ReceivedCall(std::shared_ptr<rpc::IncomingCall> call,
                           Deadlines* deadlines)
    : call_(std::move(call)),
      deadline_(deadlines->Add(
          base::SteadyNow() + call_->request().timeout,
          [weak = std::weak_ptr<rpc::IncomingCall>(call_), watch = watch_] {
            if (const auto call = weak.lock()) Expire(call.get(), watch.get());
          })) {}

void ReceivedCall::Expire(rpc::IncomingCall* call, Watching* watch) {
  // Responds first: after a response, a cancellation is not reported.
  call->Respond(absl::DeadlineExceededError("Deadline Exceeded"));
  watch->Cancel();
}

void ReceivedCall::Watching::Cancel() {
  cancelled.store(true);
  Report();
}

void ReceivedCall::Watching::Report() {
  const uint64_t taken = number.exchange(0);
  if (taken != 0) Reports::Get()->Add(taken);
}

py::bytes ReceivedCall::metadata() const { return call_->request().metadata; }

py::object ReceivedCall::Message(bool as_view) {
  memory::Payload payload = call_->TakePayload();
  py::object message = ToObject(payload, as_view);
  Unlocked unlocked;
  payload = memory::Payload();
  return message;
}

py::object ReceivedCall::TimeRemaining() const {
  if (deadline_.when() == absl::InfiniteFuture()) return py::none();
  return py::float_(absl::ToDoubleSeconds(
      std::max(deadline_.when() - base::SteadyNow(), absl::ZeroDuration())));
}

void ReceivedCall::Respond(const py::bytes& metadata,
                           const py::bytes& message) {
  Unlocked unlocked;
  deadline_.Drop();
  absl::StatusOr<memory::Payload> payload = ToPayload(ViewOf(message));
  if (!payload.ok()) return call_->Respond(payload.status());
  call_->Respond(
      rpc::Response{std::string(ViewOf(metadata)), *std::move(payload)});
}

void ReceivedCall::Watch(uint64_t number) {
  Unlocked unlocked;
  watch_->number.store(number);
  call_->OnCancel([watch = watch_] { watch->Cancel(); });
  if (is_cancelled()) watch_->Report();  // cancelled before OnCancel()
}

void CallQueue::Add(Incoming call) {
  base::MutexLock lock(&mu_);
  if (closed_) return;
  calls_.push_back(std::move(call));
  count_.store(calls_.size(), std::memory_order_release);
  if (number_ != 0) {
    // Reports only the first call of a queue that was empty.
    if (calls_.size() == 1) Reports::Get()->Add(number_);
  } else if (lingering_ >= calls_.size()) {
    lingering_changed_.notify_one();
  } else {
    serving_changed_.notify_one();
  }
}

CallQueue::Incoming CallQueue::TakeLocked() {
  if (calls_.empty()) return Incoming();
  Incoming call = std::move(calls_.front());
  calls_.pop_front();
  count_.store(calls_.size(), std::memory_order_release);
  return call;
}

CallQueue::Incoming CallQueue::Serve() {
  base::MutexLock lock(&mu_);
  // Leaves the calls to the lingering threads, as long as there are enough of
  // these threads.
  while (!closed_ && calls_.size() <= lingering_) serving_changed_.wait(mu_);
  return TakeLocked();
}

bool CallQueue::HasWork() { return count_.load(std::memory_order_acquire) > 0; }

bool CallQueue::SleepUntil(absl::Time deadline) {
  base::MutexLock lock(&mu_);
  if (calls_.empty() && !closed_) SleepOn(&lingering_changed_, &mu_, deadline);
  return !calls_.empty();
}

CallQueue::Incoming CallQueue::Linger() {
  {
    base::MutexLock lock(&mu_);
    if (!calls_.empty() || closed_) return TakeLocked();
    ++lingering_;
  }
  const absl::Time deadline = base::SteadyNow() + kLinger;
  PollUntil(
      deadline, [this] { return HasWork(); },
      [this, deadline] { return SleepUntil(deadline); });
  base::MutexLock lock(&mu_);
  --lingering_;
  Incoming call = TakeLocked();
  // Wakes the next serving thread, because more calls may wait than threads
  // linger.
  if (calls_.size() > lingering_) serving_changed_.notify_one();
  return call;
}

std::vector<CallQueue::Incoming> CallQueue::TakeSome(size_t most) {
  std::vector<Incoming> taken;
  base::MutexLock lock(&mu_);
  while (!calls_.empty() && taken.size() < most) taken.push_back(TakeLocked());
  if (!calls_.empty() && number_ != 0) Reports::Get()->Add(number_);
  return taken;
}

void CallQueue::Report(uint64_t number) {
  base::MutexLock lock(&mu_);
  number_ = number;
  if (!calls_.empty()) Reports::Get()->Add(number);
}

void CallQueue::Close() {
  std::deque<Incoming> dropped;  // destroyed outside the lock
  base::MutexLock lock(&mu_);
  closed_ = true;
  dropped.swap(calls_);
  count_.store(0, std::memory_order_release);
  serving_changed_.notify_all();
  lingering_changed_.notify_all();
}

RpcServer::RpcServer(const std::string& address, const py::bytes& token,
                     int64_t max_receive_bytes,
                     const KeepaliveArguments& keepalive) {
  absl::StatusOr<Settings> settings = ResolveSettings(Options());
  if (!settings.ok()) throw std::runtime_error(settings.status().ToString());
  rpc::Server::Options options;
  options.address = address;
  options.token = std::string(ViewOf(token));
  options.settings = *std::move(settings);
  options.polling = LoopPolling();
  options.max_receive_bytes = max_receive_bytes;
  options.keepalive = keepalive.ToConfig();
  options.callbacks = rpc::CallbackThread::kAny;
  const auto handle = [queue =
                           queue_](std::shared_ptr<rpc::IncomingCall> call) {
    if (call->request().method == kHello) return call->Respond(rpc::Response());
    queue->Add({std::move(call), nullptr});
  };
  const auto handle_stream =
      [queue = queue_](std::shared_ptr<rpc::IncomingStream> stream) {
        queue->Add({nullptr, std::move(stream)});
      };
  auto server = [&] {
    Unlocked unlocked;
    return rpc::Server::Start(std::move(options), handle, handle_stream);
  }();
  if (!server.ok()) throw std::runtime_error(server.status().ToString());
  port_ = (*server)->port();
  base::MutexLock lock(&mu_);
  server_ = *std::move(server);
}

py::object RpcServer::Wrapped(CallQueue::Incoming call) const {
  if (call.stream != nullptr) {
    return py::cast(std::make_shared<ReceivedStream>(std::move(call.stream),
                                                     deadlines_.get()));
  }
  if (call.call == nullptr) return py::none();
  return py::cast(
      std::make_shared<ReceivedCall>(std::move(call.call), deadlines_.get()));
}

py::object RpcServer::Serve() {
  CallQueue::Incoming call;
  {
    Unlocked unlocked;
    call = queue_->Serve();
  }
  return Wrapped(std::move(call));
}

py::object RpcServer::Linger() {
  CallQueue::Incoming call;
  {
    Unlocked unlocked;
    call = queue_->Linger();
  }
  return Wrapped(std::move(call));
}

py::list RpcServer::TakeSome(size_t most) {
  std::vector<CallQueue::Incoming> calls;
  {
    Unlocked unlocked;
    calls = queue_->TakeSome(most);
  }
  py::list list;
  for (CallQueue::Incoming& call : calls) list.append(Wrapped(std::move(call)));
  return list;
}

void RpcServer::Close() {
  Unlocked unlocked;
  std::shared_ptr<rpc::Server> server;
  {
    base::MutexLock lock(&mu_);
    server.swap(server_);
  }
  // Breaks the connections first, so that calls that no thread has taken end
  // with UNAVAILABLE. If the queue dropped them first, they would end with
  // INTERNAL.
  server.reset();
  queue_->Close();
}

py::list RpcServer::Describe() const {
  std::vector<rpc::Server::Description> all;
  {
    Unlocked unlocked;
    std::shared_ptr<rpc::Server> server;
    {
      base::MutexLock lock(&mu_);
      server = server_;
    }
    if (server != nullptr) all = server->Describe();
  }
  py::list list;
  for (const rpc::Server::Description& each : all) {
    list.append(py::make_tuple(each.peer, each.path.fabric, each.path.detail,
                               each.path.reason));
  }
  return list;
}

void BindServer(py::module_& module) {
  py::class_<ReceivedCall, std::shared_ptr<ReceivedCall>>(module,
                                                          "ReceivedCall")
      .def_property_readonly("method", &ReceivedCall::method)
      .def_property_readonly("peer", &ReceivedCall::peer)
      .def_property_readonly("metadata", &ReceivedCall::metadata)
      .def("message", &ReceivedCall::Message, py::arg("as_view") = false)
      .def("time_remaining", &ReceivedCall::TimeRemaining)
      .def("respond", &ReceivedCall::Respond)
      .def("is_cancelled", &ReceivedCall::is_cancelled)
      .def("watch", &ReceivedCall::Watch);
  py::class_<RpcServer>(module, "Server")
      .def(py::init<const std::string&, const py::bytes&, int64_t,
                    const KeepaliveArguments&>(),
           py::arg("address"), py::arg("token"), py::arg("max_receive_bytes"),
           py::arg("keepalive") = KeepaliveArguments())
      .def_property_readonly("port", &RpcServer::port)
      .def("serve", &RpcServer::Serve)
      .def("linger", &RpcServer::Linger)
      .def("take_some", &RpcServer::TakeSome)
      .def("report", &RpcServer::Report)
      .def("describe", &RpcServer::Describe)
      .def("close", &RpcServer::Close);
}

}  // namespace penstock::python
