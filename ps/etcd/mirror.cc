#include "ps/etcd/mirror.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "grpcpp/client_context.h"
#include "ps/etcd/errors.h"
#include "tensor_service/calls.h"
#include "third_party/etcd/rpc.grpc.pb.h"
#include "transport/base/printable.h"

namespace penstock::ps::etcd {
namespace {

constexpr absl::Duration kReadTimeout = absl::Seconds(5);
// The pause before a stream is opened again.
constexpr absl::Duration kPause = absl::Milliseconds(100);
// Limits the life of a stream. Without a limit, an endpoint that is alive but
// silent could hide changes for ever.
constexpr absl::Duration kMaxStream = absl::Seconds(60);
constexpr size_t kMaxTextBytes = 300;

}  // namespace

Mirror::Mirror(Client* client, std::string prefix,
               std::function<void()> changed)
    : client_(client),
      prefix_(std::move(prefix)),
      changed_(std::move(changed)),
      thread_([this] { ThreadLoop(); }) {}

Mirror::~Mirror() {
  cancel_.Now();
  thread_.join();
}

Values Mirror::values() const {
  absl::MutexLock lock(&mu_);
  return copy_.values();
}

absl::Status Mirror::status() const {
  absl::MutexLock lock(&mu_);
  return status_;
}

bool Mirror::Await(const std::function<bool(const Values&)>& is_wanted,
                   absl::Time deadline) {
  absl::MutexLock lock(&mu_);
  while (true) {
    const bool is_read =
        !absl::IsNotFound(status_) && copy_.next_revision() > 1;
    if (is_read && is_wanted(copy_.values())) return true;
    if (base::SteadyNow() >= deadline) return false;
    is_changed_.WaitUntil(&mu_, deadline);
  }
}

void Mirror::ThreadLoop() {
  while (!cancel_.is_cancelled()) {
    bool wants_read;
    {
      absl::MutexLock lock(&mu_);
      wants_read = copy_.wants_read();
    }
    absl::Status status;
    if (wants_read) status = ReadAll();
    if (status.ok()) status = Watch();
    if (cancel_.is_cancelled()) return;
    if (!status.ok()) SetStatus(status);
    cancel_.WaitUntil(base::SteadyNow() + kPause);
  }
}

void Mirror::SetStatus(const absl::Status& status) {
  {
    absl::MutexLock lock(&mu_);
    if (status_ == status) return;
    status_ = status;
    is_changed_.Signal();
  }
  if (changed_) changed_();
}

void Mirror::Change(const std::function<bool(Copy*)>& change) {
  bool is_news;
  {
    absl::MutexLock lock(&mu_);
    is_news = change(&copy_);
    if (!status_.ok()) {
      status_ = absl::OkStatus();
      is_news = true;
    }
    if (is_news) is_changed_.Signal();
  }
  if (is_news && changed_) changed_();
}

absl::Status Mirror::ReadAll() {
  const auto reply = client_->ReadPrefix(prefix_, kReadTimeout, &cancel_);
  if (!reply.ok()) return reply.status();
  Change([&](Copy* copy) { return copy->Read(*reply); });
  return absl::OkStatus();
}

absl::Status Mirror::CheckCreated(const etcdserverpb::WatchResponse& created) {
  absl::Status status = client_->history()->Check(created.header(), 0);
  if (!status.ok() || created.canceled()) return status;
  absl::MutexLock lock(&mu_);
  // Requests a read, which shows if etcd itself went back. If this member's
  // revision is too low, perhaps only this member is behind.
  if (created.header().revision() + 1 < copy_.next_revision()) {
    copy_.WantRead();
    return absl::UnavailableError("etcd: this member is behind");
  }
  return status;
}

etcdserverpb::WatchRequest Mirror::FirstRequest() const {
  etcdserverpb::WatchRequest request;
  etcdserverpb::WatchCreateRequest* const create =
      request.mutable_create_request();
  create->set_key(prefix_);
  create->set_range_end(EndOfPrefix(prefix_));
  create->set_progress_notify(true);
  absl::MutexLock lock(&mu_);
  create->set_start_revision(copy_.next_revision());
  return request;
}

absl::Status Mirror::Take(const etcdserverpb::WatchResponse& response) {
  const bool is_first = response.created();
  absl::Status status = is_first
                            ? CheckCreated(response)
                            : client_->history()->Check(response.header(), 0);
  if (!status.ok()) return status;
  if (response.canceled() && response.compact_revision() == 0) {
    // Forget the token, and let the next read report the error. Some releases
    // of etcd report an expired token as a forbidden key.
    client_->ForgetToken(
        {grpc::StatusCode::UNAUTHENTICATED, response.cancel_reason()});
    {
      absl::MutexLock lock(&mu_);
      copy_.WantRead();
    }
    return absl::UnavailableError(
        absl::StrCat("etcd: watch: cancelled: ",
                     base::Printable(response.cancel_reason(), kMaxTextBytes)));
  }
  // The first message of a watch has no events, and only shows that the copy is
  // current.
  Change([&](Copy* copy) { return !is_first && copy->Apply(response); });
  return absl::OkStatus();
}

absl::Status Mirror::Watch() {
  const Client::Endpoint endpoint = client_->endpoint();
  grpc::ClientContext context;
  const Cancel::Scope scope(&cancel_, &context);
  absl::Status status = client_->Prepare(endpoint, &context, &cancel_);
  if (!status.ok()) {
    client_->MoveOn(endpoint.index);
    return status;
  }
  context.set_deadline(tensor::DeadlineAfter(kMaxStream));
  const auto stub = etcdserverpb::Watch::NewStub(endpoint.channel);
  const auto stream = stub->Watch(&context);
  stream->Write(FirstRequest());
  etcdserverpb::WatchResponse response;
  bool is_heard = false;
  bool is_open = true;
  while (is_open && status.ok() && !response.canceled()) {
    is_open = stream->Read(&response);
    is_heard |= is_open;
    if (is_open) status = Take(response);
  }
  // Do not cancel a stream that has ended, so that the stream keeps its own
  // status.
  if (is_open) context.TryCancel();
  const grpc::Status ended = stream->Finish();
  client_->ForgetToken(ended);
  // Return OK if the stream has reached its own time limit, or if etcd has
  // compacted the revision. Neither is an error.
  const bool is_over =
      ended.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED && is_heard;
  if (status.ok() && (is_over || response.canceled())) return status;
  client_->MoveOn(endpoint.index);
  return status.ok() ? Explain(endpoint.name, "watch", ended) : status;
}

}  // namespace penstock::ps::etcd
