#include "transport/fabric/verbs/listener.h"

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/fabric/verbs/endpoint.h"
#include "transport/fabric/verbs/private_data.h"
#include "transport/fabric/verbs/status.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

constexpr int kBacklog = 128;

}  // namespace

// A request that was granted, until the connection is established or lost. It
// lives by its timer, which shares it; all but the making is on the loop.
class Listener::Acceptance : public CmHandler {
 public:
  Acceptance(std::shared_ptr<CmChannel> channel, progress::EventLoop* loop,
             std::shared_ptr<Connection> connection,
             std::shared_ptr<Attempt> attempt, std::shared_ptr<int> half_open)
      : channel_(std::move(channel)),
        loop_(loop),
        connection_(std::move(connection)),
        attempt_(std::move(attempt)),
        half_open_(std::move(half_open)) {
    ++*half_open_;
  }

  static void Begin(const std::shared_ptr<Acceptance>& self,
                    absl::Duration limit) {
    self->channel_->Route(self->connection_->id(), self);
    self->timer_ = self->loop_->RunAfter(limit, [self] {
      self->Finish(absl::DeadlineExceededError(
          "the peer did not complete its RDMA connection in time"));
    });
  }

  void OnCmEvent(CmEvent event) override {
    if (event.type != RDMA_CM_EVENT_ESTABLISHED) {
      return Finish(CmStatus(event.type, event.status));
    }
    if (connection_ == nullptr) return;
    channel_->Route(connection_->id(), connection_);
    Finish(VerbsEndpoint::Create(connection_));
  }

  void Finish(absl::StatusOr<std::unique_ptr<Endpoint>> result) {
    if (connection_ == nullptr) return;
    connection_ = nullptr;
    --*half_open_;
    loop_->Cancel(timer_);
    attempt_->Finish(std::move(result));
  }

 private:
  const std::shared_ptr<CmChannel> channel_;
  progress::EventLoop* const loop_;
  std::shared_ptr<Connection> connection_;  // null: finished
  const std::shared_ptr<Attempt> attempt_;
  const std::shared_ptr<int> half_open_;
  progress::EventLoop::Id timer_ = 0;
};

absl::StatusOr<std::shared_ptr<Listener>> Listener::Create(
    Api* api, std::shared_ptr<CmChannel> channel, progress::EventLoop* loop,
    const Options& options) {
  absl::StatusOr<std::vector<BoundId>> ids =
      BindToDevices(api, channel.get(), options);
  if (!ids.ok()) return ids.status();
  std::shared_ptr<Listener> self(
      new Listener(api, std::move(channel), loop, options));
  self->ids_ = *std::move(ids);
  absl::Status listening = self->Listen();
  if (!listening.ok()) return listening;
  return self;
}

Listener::Listener(Api* api, std::shared_ptr<CmChannel> channel,
                   progress::EventLoop* loop, const Options& options)
    : api_(api), channel_(std::move(channel)), loop_(loop), options_(options) {}

Listener::~Listener() {
  for (BoundId& bound : ids_) channel_->Forget(bound.id.get());
}

absl::Status Listener::Listen() {
  for (BoundId& bound : ids_) {
    channel_->Route(bound.id.get(), shared_from_this());
    if (api_->Listen(bound.id.get(), kBacklog) != 0) {
      return CallFailed(api_, errno,
                        absl::StrCat("listen at ", bound.address.Text()),
                        bound.id->verbs);
    }
  }
  return absl::OkStatus();
}

std::vector<Address> Listener::addresses() const {
  std::vector<Address> addresses;
  for (const BoundId& bound : ids_) addresses.push_back(bound.address);
  return addresses;
}

absl::Status Listener::Expect(std::shared_ptr<Attempt> attempt) {
  if (attempt->token().empty()) {
    return absl::InvalidArgumentError("an empty token");
  }
  {
    std::lock_guard<std::mutex> lock(mu_);
    std::shared_ptr<Attempt>& place = expected_[NameOfToken(attempt->token())];
    if (place != nullptr && place->pending()) {
      return absl::AlreadyExistsError("this token is waited for already");
    }
    place = attempt;
  }
  std::weak_ptr<Listener> weak = shared_from_this();
  loop_->RunAfter(options_.setup_timeout, [weak, attempt] {
    std::shared_ptr<Listener> self = weak.lock();
    if (self != nullptr) self->Forget(*attempt);
    attempt->Finish(absl::DeadlineExceededError(
        "the peer did not come to this RDMA address in time"));
  });
  return absl::OkStatus();
}

void Listener::Forget(const Attempt& attempt) {
  std::lock_guard<std::mutex> lock(mu_);
  auto it = expected_.find(NameOfToken(attempt.token()));
  if (it != expected_.end() && it->second.get() == &attempt) {
    expected_.erase(it);
  }
}

std::shared_ptr<Attempt> Listener::TakeAttempt(const CmEvent& request,
                                               const std::string& token_name) {
  std::lock_guard<std::mutex> lock(mu_);
  auto it = expected_.find(token_name);
  if (it == expected_.end()) return nullptr;
  // Whoever only knows the name may not use the token up.
  if (!RequestIsProven(request.private_data, it->second->token(),
                       request.qp_number)) {
    return nullptr;
  }
  std::shared_ptr<Attempt> attempt = std::move(it->second);
  expected_.erase(it);
  return attempt;
}

void Listener::OnCmEvent(CmEvent event) {
  if (event.type != RDMA_CM_EVENT_CONNECT_REQUEST) return;
  rdma_cm_id* const id = event.request.get();
  if (!Accept(&event).ok() && event.request) {
    // The identifier ends with the event.
    (void)api_->Reject(id, nullptr, 0);
  }
}

absl::Status Listener::Accept(CmEvent* request) {
  absl::StatusOr<Request> asked = ParseRequest(request->private_data);
  if (!asked.ok()) return asked.status();
  if (*half_open_ >= static_cast<int>(options_.max_half_open)) {
    return absl::ResourceExhaustedError("too many half-open connections");
  }
  std::shared_ptr<Attempt> attempt = TakeAttempt(*request, asked->token_name);
  if (attempt == nullptr) {
    return absl::PermissionDeniedError("no such token is waited for");
  }
  absl::Status set = SetIdOptions(api_, request->request.get(), options_);
  absl::StatusOr<std::shared_ptr<Connection>> connection =
      set.ok() ? Connection::Create(api_, channel_, std::move(request->request),
                                    options_)
               : set;
  absl::Status status = connection.status();
  if (connection.ok()) {
    (*connection)->SetPeer(asked->terms);
    auto acceptance = std::make_shared<Acceptance>(channel_, loop_, *connection,
                                                   attempt, half_open_);
    Acceptance::Begin(acceptance, options_.setup_timeout);
    status =
        (*connection)
            ->Accept(*request, MakeAnswer((*connection)->terms(),
                                          attempt->token(), request->qp_number,
                                          (*connection)->queue_pair()->qp_num));
    if (!status.ok()) acceptance->Finish(status);
  }
  if (!status.ok()) attempt->Finish(status);
  return status;
}

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
