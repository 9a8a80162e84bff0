#include "transport/fabric/verbs/listener.h"

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/fabric/timed_setup.h"
#include "transport/fabric/verbs/endpoint.h"
#include "transport/fabric/verbs/formats/private_data.h"
#include "transport/fabric/verbs/status.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

constexpr int kBacklog = 128;

}  // namespace

// A granted request, until its connection is established or lost.
class Listener::Acceptance : public CmHandler, public TimedSetup {
 public:
  Acceptance(const Site& site, std::shared_ptr<CmConnection> connection,
             const Terms& peer, std::shared_ptr<Attempt> attempt,
             std::shared_ptr<int> half_open)
      : TimedSetup(site.loop, std::move(attempt), site.options.setup_timeout,
                   "the peer did not complete its RDMA connection in time"),
        site_(site),
        connection_(std::move(connection)),
        peer_(peer),
        half_open_(std::move(half_open)) {
    ++*half_open_;
  }

  void OnCmEvent(CmEvent event) override {
    if (event.type != RDMA_CM_EVENT_ESTABLISHED) {
      return FinishOnLoop(CmStatus(event.type, event.status));
    }
    if (has_ended()) return;
    CmConnection::Begin(connection_, peer_);
    FinishOnLoop(VerbsEndpoint::Create(connection_));
  }

  // Grants `request`. Call after StartOnLoop(). After a failure, finishes the
  // attempt with the error.
  absl::Status Grant(const CmEvent& request) {
    absl::Status granted = connection_->Accept(
        request,
        MakeAnswer(connection_->terms(), attempt().token(), request.qp_number,
                   connection_->queue_pair()->qp_num));
    if (!granted.ok()) FinishOnLoop(granted);
    return granted;
  }

 private:
  void BeginOnLoop() override {
    site_.channel->SetHandler(
        connection_->id(),
        std::static_pointer_cast<Acceptance>(shared_from_this()));
  }
  void ReleaseOnLoop() override {
    connection_ = nullptr;
    --*half_open_;
  }

  const Site site_;
  std::shared_ptr<CmConnection> connection_;  // null after the end
  const Terms peer_;
  const std::shared_ptr<int> half_open_;
};

Listener::Listener(const Site& site)
    : site_(site),
      awaited_(AwaitedTokens::Create(
          site.loop, site.options.setup_timeout,
          "the peer did not connect to this RDMA address in time")) {}

absl::StatusOr<std::shared_ptr<Listener>> Listener::Create(const Site& site,
                                                           Listener* before) {
  std::vector<Address> known;
  if (before != nullptr) known = before->addresses();
  absl::StatusOr<std::vector<BoundId>> bound =
      BindToDevices(site.api, site.channel.get(), site.options, known);
  if (!bound.ok()) return bound.status();
  std::shared_ptr<Listener> self(new Listener(site));
  for (BoundId& each : *bound) {
    // Tries the windows now, because blocking here delays no message.
    // Connections use the cached result.
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
    site_.channel->SetHandler(ids_[i].get(), shared_from_this());
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

std::unique_ptr<PendingConnect> Listener::Expect(
    std::shared_ptr<Attempt> attempt) {
  absl::Status usable = CheckToken(attempt->token());
  if (!usable.ok()) return FailLater(std::move(attempt), usable);
  const std::string name = NameOfToken(attempt->token());
  return awaited_->Await(name, std::move(attempt));
}

void Listener::OnCmEvent(CmEvent event) {
  if (event.type == RDMA_CM_EVENT_DEVICE_REMOVAL ||
      event.type == RDMA_CM_EVENT_ADDR_CHANGE) {
    // Destroys the identifiers now, because removing a device waits until its
    // identifiers are destroyed. This also frees the ports for the next
    // listener.
    StopListening();
    stale_ = true;
    return;
  }
  if (event.type != RDMA_CM_EVENT_CONNECT_REQUEST) return;
  rdma_cm_id* const id = event.request.get();
  if (!Accept(&event).ok() && event.request) {
    // Rejects the request. The event owns the identifier.
    (void)site_.api->Reject(id, nullptr, 0);
  }
}

absl::Status Listener::Accept(CmEvent* request) {
  absl::StatusOr<Request> asked = ParseRequest(request->private_data);
  if (!asked.ok()) return asked.status();
  if (*half_open_ >= static_cast<int>(site_.options.max_half_open)) {
    return absl::ResourceExhaustedError("too many half-open connections");
  }
  std::shared_ptr<Attempt> attempt =
      awaited_->Take(asked->token_name, [request](const Attempt& waiting) {
        return RequestIsProven(request->private_data, waiting.token(),
                               request->qp_number);
      });
  if (attempt == nullptr) {
    return absl::PermissionDeniedError("nobody waits for this token");
  }
  absl::Status status =
      SetIdOptions(site_.api, request->request.get(), site_.options);
  absl::StatusOr<std::shared_ptr<CmConnection>> connection =
      status.ok() ? CmConnection::Create(site_, std::move(request->request))
                  : status;
  if (!connection.ok()) {
    attempt->Finish(connection.status());
    return connection.status();
  }
  auto acceptance = std::make_shared<Acceptance>(
      site_, *std::move(connection), asked->terms, attempt, half_open_);
  acceptance->StartOnLoop();
  return acceptance->Grant(*request);
}

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
