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
  Acceptance(const Site& site, std::shared_ptr<Connection> connection,
             const Terms& peer, std::shared_ptr<Attempt> attempt,
             std::shared_ptr<int> half_open)
      : site_(site),
        connection_(std::move(connection)),
        peer_(peer),
        attempt_(std::move(attempt)),
        half_open_(std::move(half_open)) {
    ++*half_open_;
  }

  static void Begin(const std::shared_ptr<Acceptance>& self) {
    const Site& site = self->site_;
    site.channel->Route(self->connection_->id(), self);
    self->timer_ = site.loop->RunAfter(site.options.setup_timeout, [self] {
      self->Finish(absl::DeadlineExceededError(
          "the peer did not complete its RDMA connection in time"));
    });
  }

  void OnCmEvent(CmEvent event) override {
    if (event.type != RDMA_CM_EVENT_ESTABLISHED) {
      return Finish(CmStatus(event.type, event.status));
    }
    if (connection_ == nullptr) return;
    Connection::Begin(connection_, peer_);
    Finish(VerbsEndpoint::Create(connection_));
  }

  void Finish(absl::StatusOr<std::unique_ptr<Endpoint>> result) {
    if (connection_ == nullptr) return;
    connection_ = nullptr;
    --*half_open_;
    site_.loop->Cancel(timer_);
    attempt_->Finish(std::move(result));
  }

 private:
  const Site site_;
  std::shared_ptr<Connection> connection_;  // null: finished
  const Terms peer_;
  const std::shared_ptr<Attempt> attempt_;
  const std::shared_ptr<int> half_open_;
  progress::EventLoop::Id timer_ = 0;
};

absl::StatusOr<std::shared_ptr<Listener>> Listener::Create(const Site& site,
                                                           Listener* before) {
  std::vector<Address> known;
  if (before != nullptr) known = before->addresses();
  absl::StatusOr<std::vector<BoundId>> bound =
      BindToDevices(site.api, site.channel.get(), site.options, known);
  if (!bound.ok()) return bound.status();
  std::shared_ptr<Listener> self(new Listener(site));
  for (BoundId& each : *bound) {
    // Here nobody waits for messages; the answer is for the connections.
    if (site.options.windows == Windows::kWhereTrusted) {
      (void)site.devices->WindowsOf(each.id->verbs, each.id->port_num);
    }
    self->addresses_.push_back(each.address);
    self->ids_.push_back(std::move(each.id));
  }
  absl::Status listening = self->Listen();
  if (!listening.ok()) return listening;
  return self;
}

Listener::~Listener() { StopListening(); }

absl::Status Listener::Listen() {
  for (size_t i = 0; i < ids_.size(); ++i) {
    site_.channel->Route(ids_[i].get(), shared_from_this());
    if (site_.api->Listen(ids_[i].get(), kBacklog) != 0) {
      return CallFailed(site_.api, errno,
                        absl::StrCat("listen at ", addresses_[i].Text()),
                        ids_[i]->verbs);
    }
  }
  return absl::OkStatus();
}

void Listener::StopListening() {
  for (CmId& id : ids_) site_.channel->Forget(id.get());
  ids_.clear();
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
  site_.loop->RunAfter(site_.options.setup_timeout, [weak, attempt] {
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
  if (event.type == RDMA_CM_EVENT_DEVICE_REMOVAL ||
      event.type == RDMA_CM_EVENT_ADDR_CHANGE) {
    // The device waits for its identifiers to go. The ports are free by the
    // time that another listener sees this one to be stale.
    StopListening();
    stale_ = true;
    return;
  }
  if (event.type != RDMA_CM_EVENT_CONNECT_REQUEST) return;
  rdma_cm_id* const id = event.request.get();
  if (!Accept(&event).ok() && event.request) {
    // The identifier ends with the event.
    (void)site_.api->Reject(id, nullptr, 0);
  }
}

absl::Status Listener::Accept(CmEvent* request) {
  absl::StatusOr<Request> asked = ParseRequest(request->private_data);
  if (!asked.ok()) return asked.status();
  if (*half_open_ >= static_cast<int>(site_.options.max_half_open)) {
    return absl::ResourceExhaustedError("too many half-open connections");
  }
  std::shared_ptr<Attempt> attempt = TakeAttempt(*request, asked->token_name);
  if (attempt == nullptr) {
    return absl::PermissionDeniedError("no such token is waited for");
  }
  absl::Status set =
      SetIdOptions(site_.api, request->request.get(), site_.options);
  absl::StatusOr<std::shared_ptr<Connection>> connection =
      set.ok() ? Connection::Create(site_, std::move(request->request)) : set;
  absl::Status status = connection.status();
  if (connection.ok()) {
    auto acceptance = std::make_shared<Acceptance>(
        site_, *connection, asked->terms, attempt, half_open_);
    Acceptance::Begin(acceptance);
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
