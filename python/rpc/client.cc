#include "python/rpc/client.h"

#include <stdexcept>
#include <utility>

#include "python/gil.h"
#include "python/rpc/closed.h"
#include "python/rpc/declined.h"
#include "python/rpc/hello.h"
#include "python/rpc/payloads.h"
#include "python/rpc/reports.h"
#include "python/rpc/spin.h"
#include "python/rpc/waits.h"
#include "transport/base/steady_time.h"

namespace penstock::python {
namespace {

namespace py = pybind11;

py::tuple OutcomeOf(absl::StatusOr<rpc::Response> result, bool as_view) {
  const absl::Status& status = result.status();
  const absl::string_view message = status.message();
  return py::make_tuple(
      static_cast<int>(status.code()),
      py::bytes(message.data(), message.size()),
      py::bytes(result.ok() ? result->metadata : ""),
      result.ok() ? ToObject(result->payload, as_view) : py::bytes());
}

absl::Status DeadlineExceeded() {
  return absl::DeadlineExceededError("Deadline Exceeded");
}

}  // namespace

bool CallState::End(absl::StatusOr<rpc::Response> result) {
  uint64_t number = 0;
  progress::EventLoop::Id timer = 0;
  {
    base::MutexLock lock(&mu_);
    if (std::exchange(has_ended_, true)) return false;
    result_ = std::move(result);
    number = number_;
    if (number == 0 && IsDeclinedLocked()) number = decline_number_;
    timer = timer_;
  }
  ended_.Set();
  if (number != 0) Reports::Get()->Add(number);
  if (timer == 0) return true;
  const auto loop = progress::EventLoop::GetPolling(LoopPolling());
  if (loop.ok()) (*loop)->Cancel(timer);
  return true;
}

absl::StatusOr<rpc::Response> CallState::TakeResult() {
  base::MutexLock lock(&mu_);
  return std::exchange(result_, absl::StatusOr<rpc::Response>());
}

void CallState::Report(uint64_t number) {
  {
    base::MutexLock lock(&mu_);
    number_ = number;
    if (!has_ended_) return;
  }
  Reports::Get()->Add(number);
}

bool CallState::IsDeclinedLocked() const {
  return result_.ok() && IsDeclined(result_->metadata);
}

void CallState::ReportDecline(uint64_t number) {
  {
    base::MutexLock lock(&mu_);
    decline_number_ = number;
    if (!has_ended_ || number_ != 0 || !IsDeclinedLocked()) return;
  }
  Reports::Get()->Add(number);
}

void CallState::ExpireAfter(absl::Duration timeout,
                            std::function<void()> expire) {
  const auto loop = progress::EventLoop::GetPolling(LoopPolling());
  if (!loop.ok()) return;
  const progress::EventLoop::Id timer =
      (*loop)->RunAfter(timeout, std::move(expire));
  {
    base::MutexLock lock(&mu_);
    timer_ = timer;
    if (!has_ended_) return;
  }
  (*loop)->Cancel(timer);
}

std::shared_ptr<RpcClient> RpcClient::Connect(
    const std::string& target, const py::bytes& token,
    int64_t max_receive_bytes, const KeepaliveArguments& keepalive) {
  absl::StatusOr<Settings> settings = ResolveSettings(Options());
  if (!settings.ok()) throw std::runtime_error(settings.status().ToString());
  rpc::Client::Options options;
  options.target = target;
  options.token = std::string(ViewOf(token));
  options.settings = *std::move(settings);
  options.polling = LoopPolling();
  options.max_receive_bytes = max_receive_bytes;
  options.keepalive = keepalive.ToConfig();
  options.callbacks = rpc::CallbackThread::kAny;
  options.enforces_timeouts = false;
  auto client = [&options] {
    Unlocked unlocked;
    return rpc::Client::Connect(std::move(options), [](const absl::Status&) {});
  }();
  if (!client.ok()) throw std::runtime_error(client.status().ToString());
  std::shared_ptr<RpcClient> made(new RpcClient(*std::move(client)));
  Unlocked unlocked;
  made->SayHello();
  return made;
}

std::shared_ptr<rpc::Client> RpcClient::client() const {
  base::MutexLock lock(&mu_);
  return client_;
}

// Makes a first call, which the server answers once the connection has its
// path.
void RpcClient::SayHello() {
  rpc::Request hello;
  hello.method = kHello;
  client()->Call(std::move(hello),
                 [ready = ready_](const absl::StatusOr<rpc::Response>& answer) {
                   if (answer.ok()) ready->store(true);
                 });
}

bool RpcClient::is_over() const {
  const std::shared_ptr<rpc::Client> client = this->client();
  return client == nullptr || client->is_over();
}

void RpcClient::Close() {
  Unlocked unlocked;
  closed_->store(true);
  std::shared_ptr<rpc::Client> client;  // destroyed outside the lock
  base::MutexLock lock(&mu_);
  client.swap(client_);
}

py::object RpcClient::Describe() const {
  absl::optional<session::PathDescription> path;
  {
    Unlocked unlocked;
    const std::shared_ptr<rpc::Client> client = this->client();
    if (client != nullptr) path = client->DescribePath();
  }
  if (!path.has_value()) return py::none();
  return py::make_tuple(path->fabric, path->detail, path->reason);
}

RpcClient::Started RpcClient::Send(const std::string& method,
                                   absl::string_view metadata,
                                   absl::string_view message,
                                   absl::Duration timeout) {
  Started started;
  started.state = std::make_shared<CallState>();
  const std::shared_ptr<rpc::Client> client = this->client();
  absl::StatusOr<memory::Payload> payload = ToPayload(message);
  if (!payload.ok()) {
    started.state->End(payload.status());
  } else if (client == nullptr) {
    started.state->End(ChannelClosed());
  } else {
    started.id =
        client->Call(rpc::Request{method, std::string(metadata),
                                  *std::move(payload), timeout},
                     [state = started.state,
                      closed = closed_](absl::StatusOr<rpc::Response> answer) {
                       if (!answer.ok())
                         answer = EndOf(answer.status(), closed->load());
                       state->End(std::move(answer));
                     });
  }
  return started;
}

std::shared_ptr<SentStream> RpcClient::Open(const std::string& method,
                                            const py::bytes& metadata,
                                            double timeout,
                                            bool has_unary_response) {
  Unlocked unlocked;
  const std::shared_ptr<rpc::Client> client = this->client();
  if (client == nullptr) return nullptr;
  return SentStream::Open(client.get(),
                          rpc::Request{method, std::string(ViewOf(metadata)),
                                       memory::Payload(), TimeoutOf(timeout)},
                          closed_, has_unary_response);
}

bool RpcClient::End(const Started& started, const absl::Status& why) {
  if (!started.state->End(why)) return false;
  const std::shared_ptr<rpc::Client> client = this->client();
  if (client != nullptr) client->Cancel(started.id);
  return true;
}

py::tuple RpcClient::CallAndWait(const std::string& method,
                                 const py::bytes& metadata,
                                 const py::bytes& message, double timeout,
                                 bool as_view) {
  std::shared_ptr<CallState> state;
  Waited waited;
  {
    Unlocked unlocked;
    const absl::Duration limit = TimeoutOf(timeout);
    const absl::Time deadline = base::SteadyNow() + limit;
    const Started started =
        Send(method, ViewOf(metadata), ViewOf(message), limit);
    state = started.state;
    waited = WaitFor(&state->ended(), deadline);
    if (waited == Waited::kDeadline) End(started, DeadlineExceeded());
    if (waited == Waited::kInterrupted) {
      End(started, absl::CancelledError("interrupted"));
    }
  }
  if (waited == Waited::kInterrupted) ThrowIfRaised();
  return OutcomeOf(state->TakeResult(), as_view);
}

std::shared_ptr<RpcClient::Call> RpcClient::Start(const std::string& method,
                                                  const py::bytes& metadata,
                                                  const py::bytes& message,
                                                  double timeout) {
  Unlocked unlocked;
  const absl::Duration limit = TimeoutOf(timeout);
  const Started started =
      Send(method, ViewOf(metadata), ViewOf(message), limit);
  if (limit != absl::InfiniteDuration()) {
    started.state->ExpireAfter(limit, [weak = weak_from_this(), started] {
      if (const auto self = weak.lock()) {
        self->End(started, DeadlineExceeded());
      }
    });
  }
  return std::make_shared<Call>(shared_from_this(), started);
}

bool RpcClient::Call::Wait(double seconds) {
  Waited waited;
  {
    Unlocked unlocked;
    waited = WaitFor(&started_.state->ended(),
                     base::SteadyNow() + TimeoutOf(seconds));
  }
  if (waited == Waited::kInterrupted) ThrowIfRaised();
  return is_done();
}

bool RpcClient::Call::End(int code, const std::string& message) {
  Unlocked unlocked;
  return client_->End(
      started_, absl::Status(static_cast<absl::StatusCode>(code), message));
}

py::tuple RpcClient::Call::Outcome(bool as_view) const {
  return OutcomeOf(started_.state->TakeResult(), as_view);
}

void BindClient(py::module_& module) {
  py::class_<RpcClient::Call, std::shared_ptr<RpcClient::Call>>(module, "Call")
      .def("is_done", &RpcClient::Call::is_done)
      .def("wait", &RpcClient::Call::Wait)
      .def("end", &RpcClient::Call::End)
      .def("report", &RpcClient::Call::Report)
      .def("report_decline", &RpcClient::Call::ReportDecline)
      .def("outcome", &RpcClient::Call::Outcome, py::arg("as_view") = false);
  py::class_<RpcClient, std::shared_ptr<RpcClient>>(module, "Client")
      .def(py::init(&RpcClient::Connect), py::arg("target"), py::arg("token"),
           py::arg("max_receive_bytes"),
           py::arg("keepalive") = KeepaliveArguments())
      .def("is_ready", &RpcClient::is_ready)
      .def("is_over", &RpcClient::is_over)
      .def("call", &RpcClient::CallAndWait, py::arg("method"),
           py::arg("metadata"), py::arg("message"), py::arg("timeout"),
           py::arg("as_view") = false)
      .def("start", &RpcClient::Start)
      .def("open", &RpcClient::Open)
      .def("describe", &RpcClient::Describe)
      .def("close", &RpcClient::Close);
}

}  // namespace penstock::python
