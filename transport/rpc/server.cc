#include "transport/rpc/server.h"

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "transport/base/mutex.h"
#include "transport/progress/acceptor.h"
#include "transport/progress/event_loop.h"
#include "transport/record/recorder.h"
#include "transport/rpc/call_connection.h"
#include "transport/rpc/callbacks.h"
#include "transport/rpc/greeters.h"
#include "transport/rpc/greeting.h"
#include "transport/rpc/loop_executor.h"
#include "transport/rpc/resolve.h"
#include "transport/rpc/server_call.h"

namespace penstock {
namespace rpc {

namespace {

absl::StatusOr<base::UniqueFd> ListenAtText(const std::string& text) {
  const absl::StatusOr<HostPort> target = SplitHostPort(text);
  if (!target.ok()) return target.status();
  const absl::StatusOr<Addresses> addresses = ParseAddress(*target);
  if (!addresses.ok()) return addresses.status();
  absl::StatusOr<base::UniqueFd> listening =
      progress::ListenAt(addresses->front(), LengthOf(addresses->front()));
  if (listening.ok()) return listening;
  return absl::Status(
      listening.status().code(),
      absl::StrCat("listen at ", text, ": ", listening.status().message()));
}

// Waits until functions were called.
class Barrier final : public std::enable_shared_from_this<Barrier> {
 public:
  // Returns a function that Wait() waits for.
  std::function<void()> Add() {
    std::lock_guard<std::mutex> lock(mu_);
    ++awaited_;
    return [self = shared_from_this()] {
      std::lock_guard<std::mutex> lock(self->mu_);
      if (--self->awaited_ == 0) self->passed_.notify_all();
    };
  }
  void Wait() {
    std::unique_lock<std::mutex> lock(mu_);
    passed_.wait(lock, [this] { return awaited_ == 0; });
  }

 private:
  std::mutex mu_;
  std::condition_variable passed_;
  int awaited_ = 0;
};

// Answers a call that is above the limit of handled calls.
void RefuseCall(const std::shared_ptr<ServerCall>& call) {
  const absl::Status why =
      absl::ResourceExhaustedError("the server handles too many calls");
  if (call->is_stream()) {
    call->EndStream({why, ""});
  } else {
    call->Respond(why);
  }
}

}  // namespace

// The state that callbacks share with the server. A thread with a connection's
// lock may take mu_, but never the reverse.
class Server::Core final : public CallConnection::Events,
                           public std::enable_shared_from_this<Core> {
 public:
  struct Handlers {
    Handler call;
    StreamHandler stream;
  };

  Core(Options options, progress::EventLoop* loop, Handlers handlers)
      : options_(std::move(options)),
        loop_(loop),
        executor_(std::make_shared<LoopExecutor>(loop, options_.polling)),
        placer_(options_.placer == nullptr
                    ? nullptr
                    : std::make_shared<const Placer>(options_.placer)),
        handlers_(std::move(handlers)) {}

  absl::Status Listen();
  void Shutdown(absl::Duration grace, std::function<void()> stopped);
  void Stop();
  void Disconnect(const std::string& peer);
  int port() const { return acceptor_->port(); }
  std::vector<std::shared_ptr<CallConnection>> connections();

 private:
  void OnGreeted(Greeted greeted);
  void Handle(std::shared_ptr<ServerCall> call);
  // Returns a slot of the limited number of handled calls, or null if all slots
  // are taken.
  std::shared_ptr<const void> TakePlace();
  void StopListening();
  void CloseAll();
  // Soon runs the functions of Shutdown() if no connection is left.
  void ReportStoppedLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnSettled(CallConnection*) override {}
  void OnLeaving(CallConnection*, const absl::Status&) override {}
  void OnStream(CallConnection* connection, uint32_t stream) override;
  void OnClosed(CallConnection* connection, const absl::Status& why) override;

  const Options options_;
  progress::EventLoop* const loop_;
  const std::shared_ptr<connection::Executor> executor_;
  const std::shared_ptr<const Placer> placer_;  // or null
  std::shared_ptr<Greeters> greeters_;
  std::shared_ptr<progress::Acceptor> acceptor_;

  base::Mutex mu_;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;  // no new connections
  bool ended_ ABSL_GUARDED_BY(mu_) = false;    // by Stop()
  std::vector<std::function<void()>> when_stopped_ ABSL_GUARDED_BY(mu_);
  // The handlers of calls. Null when ended.
  Handlers handlers_ ABSL_GUARDED_BY(mu_);
  std::map<CallConnection*, std::shared_ptr<CallConnection>> connections_
      ABSL_GUARDED_BY(mu_);
  // Each call that a handler works on has a copy.
  std::shared_ptr<std::atomic<uint32_t>> handled_ =
      std::make_shared<std::atomic<uint32_t>>(0);
};

absl::Status Server::Core::Listen() {
  absl::StatusOr<base::UniqueFd> listening = ListenAtText(options_.address);
  if (!listening.ok()) return listening.status();
  std::weak_ptr<Core> weak = shared_from_this();
  greeters_ = std::make_shared<Greeters>(
      loop_, options_.token, [weak](Greeted greeted) {
        if (std::shared_ptr<Core> self = weak.lock()) {
          self->OnGreeted(std::move(greeted));
        }
      });
  absl::StatusOr<std::shared_ptr<progress::Acceptor>> acceptor =
      progress::Acceptor::Begin(
          loop_, *std::move(listening),
          {[greeters = greeters_](base::UniqueFd socket,
                                  const sockaddr_storage& peer) {
             greeters->Begin(std::move(socket), peer);
           },
           [greeters = greeters_] { return greeters->MakeRoom(); }, nullptr});
  if (!acceptor.ok()) return acceptor.status();
  acceptor_ = *std::move(acceptor);
  return absl::OkStatus();
}

void Server::Core::OnGreeted(Greeted greeted) {
  Opened& opened = greeted.opened;
  CallConnection::Config config;
  config.version = opened.version;
  config.settings = options_.settings;
  config.peer = opened.peer;
  config.keepalive = options_.keepalive;
  config.max_receive_bytes = options_.max_receive_bytes;
  config.max_streams = options_.max_calls;
  config.callbacks = options_.callbacks;
  config.max_send_bytes = options_.max_send_bytes;
  config.half_open = std::move(greeted.place);
  if (record::Recorder* const recorder = record::Recorder::OfProcess()) {
    config.recorded_client = recorder->NextClient();
  }
  std::shared_ptr<CallConnection> connection = CallConnection::Create(
      config, loop_, executor_, std::move(opened.socket), shared_from_this());
  {
    base::MutexLock lock(&mu_);
    if (stopped_) return;
    connections_[connection.get()] = connection;
  }
  connection->Start(opened.received);
}

void Server::Core::OnStream(CallConnection* connection, uint32_t stream) {
  std::shared_ptr<Core> self = shared_from_this();
  std::shared_ptr<CallConnection> shared;
  {
    base::MutexLock lock(&mu_);
    auto it = connections_.find(connection);
    if (it == connections_.end()) return;  // the server is stopping
    shared = it->second;
  }
  std::shared_ptr<const void> place = TakePlace();
  ServerCall::Handler handler = [self](std::shared_ptr<ServerCall> call) {
    self->Handle(std::move(call));
  };
  std::shared_ptr<const Placer> placer = placer_;
  if (place == nullptr) {
    handler = &RefuseCall;
    placer = nullptr;
  }
  std::make_shared<ServerCall>(std::move(shared), stream, std::move(handler),
                               std::move(placer), std::move(place))
      ->Attach();
}

std::shared_ptr<const void> Server::Core::TakePlace() {
  // Counts only if there is a limit, which saves each call some time.
  if (options_.max_handled_calls == UINT32_MAX) return handled_;
  if (handled_->fetch_add(1) >= options_.max_handled_calls) {
    handled_->fetch_sub(1);
    return nullptr;
  }
  return std::shared_ptr<const void>(
      handled_.get(),
      [handled = handled_](const void*) { handled->fetch_sub(1); });
}

void Server::Core::Handle(std::shared_ptr<ServerCall> call) {
  Handlers handlers;
  bool is_ended;
  {
    base::MutexLock lock(&mu_);
    handlers = handlers_;
    is_ended = ended_;
  }
  if (is_ended) {
    const absl::Status why = absl::UnavailableError("the server was stopped");
    return call->is_stream() ? call->EndStream({why, ""}) : call->Respond(why);
  }
  if (call->is_stream()) {
    if (handlers.stream == nullptr) {
      return call->EndStream(
          {absl::UnimplementedError("this server accepts no streams"), ""});
    }
    return handlers.stream(std::make_shared<IncomingStream>(std::move(call)));
  }
  auto incoming = std::make_shared<IncomingCall>(std::move(call));
  if (handlers.call != nullptr) handlers.call(std::move(incoming));
}

void Server::Core::OnClosed(CallConnection* connection, const absl::Status&) {
  // Keeps the connection until its callbacks have run, because Stop() waits for
  // them.
  connection->RunLater([self = shared_from_this(), connection] {
    std::shared_ptr<CallConnection> last;  // dropped outside the lock
    base::MutexLock lock(&self->mu_);
    auto it = self->connections_.find(connection);
    if (it == self->connections_.end()) return;
    last = std::move(it->second);
    self->connections_.erase(it);
    self->ReportStoppedLocked();
  });
}

std::vector<std::shared_ptr<CallConnection>> Server::Core::connections() {
  std::vector<std::shared_ptr<CallConnection>> result;
  base::MutexLock lock(&mu_);
  for (const auto& entry : connections_) result.push_back(entry.second);
  return result;
}

void Server::Core::StopListening() {
  acceptor_->Stop();
  loop_->Post([greeters = greeters_] { greeters->Stop(); });
  base::MutexLock lock(&mu_);
  stopped_ = true;
}

void Server::Core::Shutdown(absl::Duration grace,
                            std::function<void()> stopped) {
  if (loop_->IsForeign()) return;  // the server belongs to the parent
  StopListening();
  const absl::Status why = absl::UnavailableError("the server is stopping");
  for (const auto& connection : connections()) connection->Drain(why);
  const std::weak_ptr<Core> weak = shared_from_this();
  loop_->RunAfter(grace, [weak] {
    if (const std::shared_ptr<Core> self = weak.lock()) self->CloseAll();
  });
  base::MutexLock lock(&mu_);
  when_stopped_.push_back(std::move(stopped));
  ReportStoppedLocked();
}

void Server::Core::ReportStoppedLocked() {
  if (!stopped_ || !connections_.empty() || when_stopped_.empty()) return;
  executor_->Post([self = shared_from_this()] {
    std::vector<std::function<void()>> when_stopped;
    {
      base::MutexLock lock(&self->mu_);
      when_stopped.swap(self->when_stopped_);  // empty after Stop()
    }
    for (const std::function<void()>& stopped : when_stopped) stopped();
  });
}

void Server::Core::CloseAll() {
  for (const std::shared_ptr<CallConnection>& connection : connections()) {
    connection->Close(absl::UnavailableError("the server was stopped"));
  }
}

void Server::Core::Disconnect(const std::string& peer) {
  for (const std::shared_ptr<CallConnection>& connection : connections()) {
    if (connection->peer() != peer) continue;
    connection->Close(absl::UnavailableError("the server has disconnected"));
  }
}

void Server::Core::Stop() {
  if (loop_->IsForeign()) return;  // the server belongs to the parent
  StopListening();
  Handlers handlers;  // destroyed outside the lock
  std::vector<std::function<void()>> unused;
  {
    base::MutexLock lock(&mu_);
    ended_ = true;
    std::swap(handlers, handlers_);
    unused.swap(when_stopped_);
  }
  // Waits for callbacks that run or will run. Waiting for a last callback
  // suffices: the callbacks of a connection run one after another, and so do
  // the callbacks of the loop.
  auto barrier = std::make_shared<Barrier>();
  for (const std::shared_ptr<CallConnection>& connection : connections()) {
    connection->Close(absl::UnavailableError("the server was stopped"));
    CallConnection::Section section(connection.get());
    connection->RunLater(barrier->Add());
  }
  loop_->Post(barrier->Add());
  if (loop_->IsCurrent() || Callbacks::AreRunningHere()) return;
  barrier->Wait();
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(
    Options options, Handler handler, StreamHandler stream_handler) {
  if (options.token.empty() || options.token.size() > kMaxTokenBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a token has 1 to ", kMaxTokenBytes, " bytes"));
  }
  const absl::StatusOr<progress::EventLoop*> loop =
      progress::EventLoop::GetPolling(options.polling);
  if (!loop.ok()) return loop.status();
  auto core = std::make_shared<Core>(
      std::move(options), *loop,
      Core::Handlers{std::move(handler), std::move(stream_handler)});
  absl::Status listening = core->Listen();
  if (!listening.ok()) return listening;
  return std::unique_ptr<Server>(new Server(std::move(core)));
}

Server::~Server() { core_->Stop(); }

void Server::Shutdown(absl::Duration grace, std::function<void()> stopped) {
  core_->Shutdown(grace, std::move(stopped));
}

void Server::Disconnect(const std::string& peer) { core_->Disconnect(peer); }

int Server::port() const { return core_->port(); }

std::vector<Server::Description> Server::Describe() const {
  std::vector<Description> descriptions;
  for (const std::shared_ptr<CallConnection>& connection :
       core_->connections()) {
    descriptions.push_back({connection->peer(), connection->DescribePath(),
                            connection->counters()});
  }
  return descriptions;
}

}  // namespace rpc
}  // namespace penstock
