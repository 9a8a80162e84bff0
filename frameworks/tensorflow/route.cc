#include "frameworks/tensorflow/route.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "frameworks/tensorflow/worker.h"
#include "tensorflow/core/distributed_runtime/tensor_coding.h"
#include "tensorflow/core/platform/env.h"
#include "transport/base/log.h"
#include "transport/base/steady_time.h"

namespace penstock {
namespace tensorflow {
namespace {

// The time after which a peer without a data plane is asked again for one.
constexpr absl::Duration kStockTime = absl::Seconds(10);

// Runs `closure` on another thread, because the caller may hold locks of
// TensorFlow.
void Elsewhere(std::function<void()> closure) {
  ::tensorflow::Env::Default()->SchedClosure(std::move(closure));
}

std::string HostOf(const std::string& target) {
  return target.substr(0, target.rfind(':'));
}

void Forget(::tensorflow::CallOptions* options) {
  if (options != nullptr) options->ClearCancelCallback();
}

// Returns true if an RPC ended without an answer from the peer.
bool HasNoAnswer(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsCancelled(status);
}

}  // namespace

// The RPC that asks a peer. TensorFlow keeps pointers into this object until
// the RPC is done.
struct Route::Asking {
  Ticket asker = 0;
  ::tensorflow::WorkerInterface* worker = nullptr;  // the asker's
  Cancelled cancelled;                              // the asker's
  ::tensorflow::CallOptions options;
  ::tensorflow::RecvTensorRequest request = HelloRequest();
  ::tensorflow::TensorResponse response;
};

void Route::Start(Call call) {
  Pending pending;
  pending.ticket = next_ticket_.fetch_add(1, std::memory_order_relaxed);
  pending.cancelled = std::make_shared<std::atomic<bool>>(false);
  if (call.options != nullptr) {
    call.options->SetCancelCallback([self = weak_from_this(),
                                     ticket = pending.ticket,
                                     cancelled = pending.cancelled] {
      *cancelled = true;
      std::shared_ptr<Route> route = self.lock();
      if (route != nullptr) route->Cancel(ticket);
    });
  }
  pending.call = std::move(call);
  {
    base::MutexLock lock(&mu_);
    waiting_.push_back(std::move(pending));
  }
  Advance();
}

void Route::Nudge() {
  std::shared_ptr<rpc::Client> client;
  {
    base::MutexLock lock(&mu_);
    if (state_ != State::kConnected) return;
    client = client_;
  }
  rpc::Request ping;
  ping.method = kPing;
  client->Call(std::move(ping), [](const absl::StatusOr<rpc::Response>&) {});
}

// Advances the waiting calls as far as the state allows.
void Route::Advance() {
  std::list<Pending> calls;
  std::shared_ptr<rpc::Client> client;
  absl::Status why;
  std::shared_ptr<Asking> asking;
  {
    base::MutexLock lock(&mu_);
    if (state_ == State::kStock && base::SteadyNow() >= stock_until_) {
      state_ = State::kUnknown;
    }
    if (state_ == State::kAsking || state_ == State::kConnecting ||
        waiting_.empty()) {
      return;
    }
    if (state_ == State::kUnknown) {
      asking = BeginAsking();
    } else {
      calls.swap(waiting_);
      if (state_ == State::kConnected) client = client_;
      why = stock_why_;
      if (client != nullptr) {
        for (const Pending& pending : calls) {
          sent_[pending.ticket] = Sent{client, 0};
        }
        calls_ += calls.size();
      }
    }
  }
  if (asking != nullptr) return Ask(asking);
  for (Pending& pending : calls) {
    if (client != nullptr) {
      Send(client, std::move(pending));
    } else {
      UseStock(pending, why);
    }
  }
}

// Asks the peer, with the worker of the first waiting call. The worker exists
// until this call has ended, and Cancel() leaves this call first in the queue.
std::shared_ptr<Route::Asking> Route::BeginAsking() {
  state_ = State::kAsking;
  asking_ = std::make_shared<Asking>();
  asking_->asker = waiting_.front().ticket;
  asking_->worker = waiting_.front().call.worker;
  asking_->cancelled = waiting_.front().cancelled;
  return asking_;
}

void Route::Ask(const std::shared_ptr<Asking>& asking) {
  if (*asking->cancelled) return OnHello(asking, absl::CancelledError());
  asking->response.InitAlloc(options_.cpu, ::tensorflow::AllocatorAttributes());
  asking->worker->RecvTensorAsync(
      &asking->options, &asking->request, &asking->response,
      [self = shared_from_this(), asking](const absl::Status& status) {
        self->OnHello(asking, status);
      });
  // Cancels the RPC if its call was cancelled before the RPC registered for
  // cancellation.
  if (*asking->cancelled) asking->options.StartCancel();
}

void Route::OnHello(const std::shared_ptr<Asking>& asking,
                    const absl::Status& status) {
  if (!status.ok() && HasNoAnswer(status)) {
    Pending asker;
    {
      base::MutexLock lock(&mu_);
      asking_ = nullptr;
      asker = std::move(waiting_.front());
      waiting_.pop_front();
      state_ = State::kUnknown;
    }
    return AskAgain(status, asker);
  }
  {
    base::MutexLock lock(&mu_);
    asking_ = nullptr;
    if (status.ok()) state_ = State::kConnecting;
  }
  if (!status.ok()) {
    return BecomeStock(
        absl::IsFailedPrecondition(status)
            ? status
            : absl::FailedPreconditionError("the peer has no "
                                            "penstock-tensorflow, or serves "
                                            "plain grpc"));
  }
  const absl::StatusOr<Hello> hello = ParseHello(asking->response.metadata());
  if (!hello.ok()) return BecomeStock(hello.status());
  Connect(*hello);
}

// Makes the asker's call by stock RPC, which reports the problem.
void Route::AskAgain(const absl::Status& status, const Pending& asker) {
  UseStock(asker, status);
  Advance();
}

void Route::Connect(const Hello& hello) {
  uint64_t connection = 0;
  {
    base::MutexLock lock(&mu_);
    connection = ++connection_;
  }
  rpc::Client::Options options;
  options.target = absl::StrCat(HostOf(options_.target), ":", hello.port);
  options.token = hello.token;
  options.settings = options_.settings;
  options.polling = options_.polling;
  absl::StatusOr<std::unique_ptr<rpc::Client>> client = rpc::Client::Connect(
      options, [self = weak_from_this(), connection](const absl::Status&) {
        std::shared_ptr<Route> route = self.lock();
        if (route != nullptr) route->OnLost(connection);
      });
  if (!client.ok()) return BecomeStock(client.status());
  std::shared_ptr<rpc::Client> shared = *std::move(client);
  {
    base::MutexLock lock(&mu_);
    client_ = shared;
  }
  rpc::Request ping;
  ping.method = kPing;
  shared->Call(std::move(ping), [self = shared_from_this()](
                                    const absl::StatusOr<rpc::Response>& pong) {
    self->OnPong(pong.status());
  });
}

void Route::OnPong(const absl::Status& status) {
  if (!status.ok()) return BecomeStock(status);
  {
    base::MutexLock lock(&mu_);
    state_ = State::kConnected;
    lost_ = false;
  }
  Advance();
}

void Route::OnLost(uint64_t connection) {
  std::shared_ptr<rpc::Client> client;  // destroyed outside the lock
  base::MutexLock lock(&mu_);
  if (connection != connection_ || state_ != State::kConnected) return;
  state_ = State::kUnknown;
  lost_ = true;
  client = std::move(client_);
}

bool Route::is_lost() const {
  base::MutexLock lock(&mu_);
  // Also checks the client, because OnLost() runs only after the calls were
  // answered.
  return lost_ || (state_ == State::kConnected && client_->is_over());
}

void Route::BecomeStock(const absl::Status& why) {
  base::LogInfo(absl::StrCat("TensorFlow's task at ", options_.target,
                             " is reached by stock gRPC: ", why.message()));
  std::shared_ptr<rpc::Client> client;  // destroyed outside the lock
  {
    base::MutexLock lock(&mu_);
    client = std::move(client_);
    state_ = State::kStock;
    lost_ = false;
    stock_why_ = why;
    stock_until_ = base::SteadyNow() + kStockTime;
  }
  Advance();
}

// Cancels a call. May run under locks of TensorFlow.
void Route::Cancel(Ticket ticket) {
  Sent sent;
  std::shared_ptr<Asking> asking;
  std::list<Pending> cancelled;
  {
    base::MutexLock lock(&mu_);
    auto it = sent_.find(ticket);
    if (it != sent_.end()) {
      sent = it->second;
    } else if (asking_ != nullptr && asking_->asker == ticket) {
      asking = asking_;
    } else if (state_ == State::kAsking || state_ == State::kConnecting) {
      for (auto each = waiting_.begin(); each != waiting_.end(); ++each) {
        if (each->ticket != ticket) continue;
        cancelled.splice(cancelled.end(), waiting_, each);
        break;
      }
    }
  }
  // Cancels the RPC that asks for the peer's address. OnHello() then ends the
  // call.
  if (asking != nullptr) asking->options.StartCancel();
  if (sent.id != 0) sent.client->Cancel(sent.id);
  for (const Pending& pending : cancelled) AnswerCancelled(pending.call);
}

void Route::AnswerCancelled(const Call& call) {
  Elsewhere([call] {
    Forget(call.options);
    call.answered(absl::CancelledError("the step was ended"));
  });
}

void Route::Send(const std::shared_ptr<rpc::Client>& client, Pending pending) {
  const Ticket ticket = pending.ticket;
  rpc::Request request = std::move(pending.call.request);
  const rpc::Client::CallId id = client->Call(
      std::move(request),
      [self = shared_from_this(), ticket,
       call = std::move(pending.call)](absl::StatusOr<rpc::Response> response) {
        self->OnAnswered(ticket, call, std::move(response));
      });
  {
    base::MutexLock lock(&mu_);
    auto it = sent_.find(ticket);
    if (it == sent_.end()) return;  // already answered
    it->second.id = id;
  }
  if (*pending.cancelled) client->Cancel(id);
}

void Route::OnAnswered(Ticket ticket, const Call& call,
                       absl::StatusOr<rpc::Response> response) {
  Sent sent;  // the client may be destroyed, outside the lock
  {
    base::MutexLock lock(&mu_);
    auto it = sent_.find(ticket);
    sent = std::move(it->second);
    sent_.erase(it);
  }
  Forget(call.options);
  call.answered(std::move(response));
}

void Route::UseStock(const Pending& pending, const absl::Status& why) {
  const Call& call = pending.call;
  if (*pending.cancelled) return AnswerCancelled(call);
  if (options_.settings.policy == Policy::kRequire) return Refuse(call, why);
  {
    base::MutexLock lock(&mu_);
    ++stock_calls_;
  }
  call.stock(pending.cancelled);  // takes over the cancellation
}

// Ends a call with UNAVAILABLE, which makes TensorFlow's programs wait for a
// restarting peer and retry.
void Route::Refuse(const Call& call, const absl::Status& why) {
  const absl::Status status(
      HasNoAnswer(why) ? absl::StatusCode::kUnavailable
                       : absl::StatusCode::kFailedPrecondition,
      absl::StrCat("PENSTOCK_POLICY is require, but ", options_.target,
                   " cannot be reached by Penstock: ", why.message(),
                   " (PENSTOCK_POLICY=prefer would use gRPC)"));
  Elsewhere([call, status] {
    Forget(call.options);
    call.answered(status);
  });
}

Route::Description Route::Describe() const {
  Description description;
  description.target = options_.target;
  std::shared_ptr<rpc::Client> client;
  {
    base::MutexLock lock(&mu_);
    description.calls = calls_;
    description.stock_calls = stock_calls_;
    if (state_ == State::kStock) {
      description.path = "grpc";
      description.reason = std::string(stock_why_.message());
    }
    if (state_ == State::kConnected) client = client_;
  }
  if (client == nullptr) return description;
  description.counters = client->counters();
  const absl::optional<session::PathDescription> path = client->DescribePath();
  if (!path.has_value()) return description;
  description.path = path->fabric;
  description.detail = path->detail;
  description.reason = path->reason;
  return description;
}

}  // namespace tensorflow
}  // namespace penstock
