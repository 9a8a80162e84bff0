#include "transport/rpc/client.h"

#include <atomic>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "transport/base/mutex.h"
#include "transport/progress/event_loop.h"
#include "transport/rpc/call_connection.h"
#include "transport/rpc/client_call.h"
#include "transport/rpc/client_stream.h"
#include "transport/rpc/head.h"
#include "transport/rpc/loop_executor.h"
#include "transport/rpc/opening.h"

namespace penstock {
namespace rpc {

connection::Keepalive::Config DefaultKeepalive() {
  connection::Keepalive::Config config;
  config.time = absl::Seconds(30);
  config.timeout = absl::Seconds(60);
  config.permit_without_calls = true;
  config.max_pings_without_data = 0;
  return config;
}

// The state that callbacks share with the client. A thread with the
// connection's lock may take mu_, but never the reverse.
class Client::Core final : public CallConnection::Events,
                           public std::enable_shared_from_this<Core> {
 public:
  Core(Options options, progress::EventLoop* loop, Closed closed)
      : options_(std::move(options)),
        loop_(loop),
        executor_(std::make_shared<LoopExecutor>(loop, options_.polling)),
        closed_(std::move(closed)) {}

  void Connect(const HostPort& target);
  CallId Call(Request request, Done done);
  std::unique_ptr<OutgoingStream> Open(const Request& request,
                                       ClientStream::Reports reports);
  void EndCall(CallId id, const absl::Status& why);
  void Destroy();
  bool is_over() {
    base::MutexLock lock(&mu_);
    return !over_.ok();
  }
  std::shared_ptr<CallConnection> connection() {
    base::MutexLock lock(&mu_);
    return connection_;
  }

 private:
  struct Entry {
    std::shared_ptr<OutgoingCall> call;
    progress::EventLoop::Id timer = 0;
  };

  void OnOpened(absl::StatusOr<Opened> opened);
  void OnSettled(CallConnection* connection) override;
  void OnLeaving(CallConnection* connection, const absl::Status& why) override;
  void OnStream(CallConnection*, uint32_t) override {
  }  // servers open no streams
  void OnClosed(CallConnection* connection, const absl::Status& why) override;

  // Ends the client. No calls can be sent afterwards. Soon reports the calls
  // that were not sent.
  void Finish(const absl::Status& why);
  // Schedules the call of `closed`. There is no call if the owner destroys the
  // client before.
  void PostClosed(const absl::Status& why);
  void PostReport(OutgoingCall::Unsent unsent, const absl::Status& why);
  Done Forgetting(CallId id, Done done);
  void Forget(CallId id);
  // Starts the call, or keeps the call until there is a connection.
  void Begin(CallId id, const std::shared_ptr<OutgoingCall>& call,
             absl::Duration timeout);
  void AddLocked(CallId id, std::shared_ptr<OutgoingCall> call,
                 absl::Duration timeout) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::vector<std::shared_ptr<OutgoingCall>> CallsLocked()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Options options_;
  progress::EventLoop* const loop_;
  const std::shared_ptr<connection::Executor> executor_;
  std::atomic<CallId> next_id_{1};

  base::Mutex mu_;
  Closed closed_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<Opening> opening_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<CallConnection> connection_ ABSL_GUARDED_BY(mu_);
  bool settled_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status over_ ABSL_GUARDED_BY(mu_);  // not OK: the client is over
  std::map<CallId, Entry> calls_ ABSL_GUARDED_BY(mu_);
};

void Client::Core::Connect(const HostPort& target) {
  std::shared_ptr<Core> self = shared_from_this();
  base::MutexLock lock(&mu_);
  opening_ =
      Opening::Begin(loop_, target, options_.token, options_.connect_timeout,
                     [self](absl::StatusOr<Opened> opened) {
                       self->OnOpened(std::move(opened));
                     });
}

void Client::Core::OnOpened(absl::StatusOr<Opened> opened) {
  if (!opened.ok()) {
    Finish(opened.status());
    return PostClosed(opened.status());
  }
  CallConnection::Config config;
  config.is_client = true;
  config.version = opened->version;
  config.settings = options_.settings;
  config.peer = opened->peer;
  config.keepalive = options_.keepalive;
  config.max_receive_bytes = options_.max_receive_bytes;
  config.callbacks = options_.callbacks;
  config.max_send_bytes = options_.max_send_bytes;
  std::shared_ptr<CallConnection> connection = CallConnection::Create(
      config, loop_, executor_, std::move(opened->socket), shared_from_this());
  {
    base::MutexLock lock(&mu_);
    opening_ = nullptr;
    if (!over_.ok()) return;  // the client was destroyed
    connection_ = connection;
  }
  connection->Start(opened->received);
}

std::vector<std::shared_ptr<OutgoingCall>> Client::Core::CallsLocked() {
  std::vector<std::shared_ptr<OutgoingCall>> calls;
  for (const auto& entry : calls_) calls.push_back(entry.second.call);
  return calls;
}

void Client::Core::OnSettled(CallConnection* connection) {
  std::vector<std::shared_ptr<OutgoingCall>> calls;
  {
    base::MutexLock lock(&mu_);
    settled_ = true;
    calls = CallsLocked();
  }
  for (const auto& call : calls) call->Start(connection);
}

void Client::Core::OnLeaving(CallConnection*, const absl::Status& why) {
  base::MutexLock lock(&mu_);
  if (over_.ok()) over_ = why;
}

void Client::Core::Finish(const absl::Status& why) {
  base::MutexLock lock(&mu_);
  if (over_.ok()) over_ = why;
  opening_ = nullptr;
  connection_ = nullptr;  // not the last share: the caller holds another
  for (const auto& call : CallsLocked()) {
    PostReport(call->TakeUnsent(), why);
  }
}

void Client::Core::PostReport(OutgoingCall::Unsent unsent,
                              const absl::Status& why) {
  if (unsent == nullptr) return;
  executor_->Post([unsent = std::move(unsent), why] { unsent(why); });
}

void Client::Core::PostClosed(const absl::Status& why) {
  executor_->Post([self = shared_from_this(), why] {
    Closed closed;
    {
      base::MutexLock lock(&self->mu_);
      closed = std::exchange(self->closed_, nullptr);
    }
    if (closed != nullptr) closed(why);
  });
}

void Client::Core::OnClosed(CallConnection* connection,
                            const absl::Status& why) {
  const absl::Status status = absl::UnavailableError(
      absl::StrCat("connection to ", options_.target, ": ", why.message()));
  Finish(status);
  // Calls `closed` after the reports of sent calls.
  connection->RunLater(
      [self = shared_from_this(), status] { self->PostClosed(status); });
}

Client::Done Client::Core::Forgetting(CallId id, Done done) {
  return [self = shared_from_this(), id,
          done = std::move(done)](absl::StatusOr<Response> result) {
    self->Forget(id);
    done(std::move(result));
  };
}

void Client::Core::Forget(CallId id) {
  Entry entry;  // destroyed outside the lock
  base::MutexLock lock(&mu_);
  auto it = calls_.find(id);
  if (it == calls_.end()) return;
  entry = std::move(it->second);
  calls_.erase(it);
  if (entry.timer != 0) loop_->Cancel(entry.timer);
}

Client::CallId Client::Core::Call(Request request, Done done) {
  const CallId id = next_id_.fetch_add(1, std::memory_order_relaxed);
  absl::StatusOr<std::string> head = EncodeRequest(request);
  if (!head.ok()) {
    executor_->Post(
        [done = std::move(done), error = head.status()] { done(error); });
    return id;
  }
  Begin(
      id,
      std::make_shared<ClientCall>(*std::move(head), std::move(request.payload),
                                   Forgetting(id, std::move(done))),
      request.timeout);
  return id;
}

std::unique_ptr<OutgoingStream> Client::Core::Open(
    const Request& request, ClientStream::Reports reports) {
  const CallId id = next_id_.fetch_add(1, std::memory_order_relaxed);
  std::shared_ptr<Core> self = shared_from_this();
  reports.end = [self, id, end = std::move(reports.end)](End ended) {
    self->Forget(id);
    end(std::move(ended));
  };
  absl::StatusOr<std::string> head =
      request.payload.size() == 0
          ? EncodeRequest(request, /*is_stream=*/true)
          : absl::InvalidArgumentError("a stream's messages are written");
  const absl::Status valid = head.status();
  auto stream = std::make_shared<ClientStream>(
      valid.ok() ? *std::move(head) : "", executor_, std::move(reports));
  if (valid.ok()) {
    Begin(id, stream, request.timeout);
  } else {
    PostReport(stream->TakeUnsent(), valid);
  }
  return std::make_unique<OutgoingStream>(std::move(stream), [self, id] {
    self->EndCall(id, absl::CancelledError("the call was cancelled"));
  });
}

void Client::Core::Begin(CallId id, const std::shared_ptr<OutgoingCall>& call,
                         absl::Duration timeout) {
  std::shared_ptr<CallConnection> connection;
  absl::Status over;
  {
    base::MutexLock lock(&mu_);
    over = over_;
    if (over.ok() && loop_->IsForeign()) {
      over = absl::UnavailableError("the client belongs to the parent process");
    }
    if (over.ok()) {
      AddLocked(id, call, timeout);
      if (settled_) connection = connection_;
    }
  }
  if (!over.ok()) {
    PostReport(call->TakeUnsent(), over);
  } else if (connection != nullptr) {
    CallConnection::Section section(connection.get());
    call->Start(connection.get());
  }
}

void Client::Core::AddLocked(CallId id, std::shared_ptr<OutgoingCall> call,
                             absl::Duration timeout) {
  Entry& entry = calls_[id];
  entry.call = std::move(call);
  if (timeout == absl::InfiniteDuration() || !options_.enforces_timeouts) {
    return;
  }
  entry.timer = loop_->RunAfter(timeout, [self = shared_from_this(), id] {
    self->EndCall(
        id, absl::DeadlineExceededError("the call was not answered in time"));
  });
}

void Client::Core::EndCall(CallId id, const absl::Status& why) {
  std::shared_ptr<OutgoingCall> call;
  std::shared_ptr<CallConnection> connection;
  {
    base::MutexLock lock(&mu_);
    auto it = calls_.find(id);
    if (it == calls_.end()) return;
    call = it->second.call;
    connection = connection_;
    if (connection == nullptr) return PostReport(call->TakeUnsent(), why);
  }
  CallConnection::Section section(connection.get());
  call->Cancel(why);
  PostReport(call->TakeUnsent(), why);
}

void Client::Core::Destroy() {
  if (loop_->IsForeign()) return;  // the connection belongs to the parent
  const absl::Status why = absl::CancelledError("the client was destroyed");
  std::shared_ptr<CallConnection> connection;
  std::shared_ptr<Opening> opening;
  Closed closed;  // destroyed outside the lock
  {
    base::MutexLock lock(&mu_);
    closed = std::exchange(closed_, nullptr);
    if (over_.ok()) over_ = why;
    connection = connection_;
    opening = std::move(opening_);
  }
  if (opening != nullptr) opening->Cancel();
  if (connection == nullptr) return Finish(why);
  connection->Close(absl::UnavailableError(why.message()));
}

absl::StatusOr<std::unique_ptr<Client>> Client::Connect(Options options,
                                                        Closed closed) {
  const absl::StatusOr<HostPort> target = SplitHostPort(options.target);
  if (!target.ok()) return target.status();
  const absl::StatusOr<progress::EventLoop*> loop =
      progress::EventLoop::GetPolling(options.polling);
  if (!loop.ok()) return loop.status();
  auto core =
      std::make_shared<Core>(std::move(options), *loop, std::move(closed));
  core->Connect(*target);
  return std::unique_ptr<Client>(new Client(std::move(core)));
}

void OutgoingStream::Write(memory::Payload message, Accepted accepted,
                           bool is_last) {
  stream_->Write(std::move(message), std::move(accepted), is_last);
}

void OutgoingStream::HalfClose() { stream_->HalfClose(); }

void OutgoingStream::Read(Received received) {
  stream_->Read(std::move(received));
}

Client::~Client() { core_->Destroy(); }

void Client::Close() { core_->Destroy(); }

Client::CallId Client::Call(Request request, Done done) {
  return core_->Call(std::move(request), std::move(done));
}

std::unique_ptr<OutgoingStream> Client::Open(
    const Request& request, std::function<void(std::string)> metadata,
    std::function<void(End)> end) {
  return core_->Open(request, {std::move(metadata), std::move(end)});
}

void Client::Cancel(CallId call) {
  core_->EndCall(call, absl::CancelledError("the call was cancelled"));
}

bool Client::is_over() const { return core_->is_over(); }

absl::optional<session::PathDescription> Client::DescribePath() const {
  std::shared_ptr<CallConnection> connection = core_->connection();
  if (connection == nullptr) return absl::nullopt;
  return connection->DescribePath();
}

session::Counters Client::counters() const {
  std::shared_ptr<CallConnection> connection = core_->connection();
  return connection == nullptr ? session::Counters() : connection->counters();
}

}  // namespace rpc
}  // namespace penstock
