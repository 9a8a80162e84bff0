#include "tests/ps/etcd/fake_etcd.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"
#include "third_party/etcd/rpc.grpc.pb.h"

namespace penstock::ps::etcd {
namespace {

using grpc::ServerContext;
using grpc::Status;

// The time after which a watch looks again whether its client is there.
constexpr absl::Duration kLookEvery = absl::Milliseconds(20);

}  // namespace

// The services of one endpoint.
class FakeEtcd::Services final : public etcdserverpb::KV::Service,
                                 public etcdserverpb::Lease::Service,
                                 public etcdserverpb::Watch::Service,
                                 public etcdserverpb::Auth::Service {
 public:
  explicit Services(Shared* shared) : shared_(shared) {}

  Status Range(ServerContext* context,
               const etcdserverpb::RangeRequest* request,
               etcdserverpb::RangeResponse* reply) override {
    absl::MutexLock lock(&shared_->mu);
    Status status = Admit(*context);
    if (!status.ok()) return status;
    ++reads_;
    shared_->state.Read(*request, reply);
    Fill(reply->mutable_header());
    return Status::OK;
  }

  Status Txn(ServerContext* context, const etcdserverpb::TxnRequest* request,
             etcdserverpb::TxnResponse* reply) override {
    absl::Duration delay;
    Status status = DoTxn(*context, *request, reply, &delay);
    absl::SleepFor(delay);
    return status;
  }

  Status DoTxn(const ServerContext& context,
               const etcdserverpb::TxnRequest& request,
               etcdserverpb::TxnResponse* reply, absl::Duration* delay) {
    absl::MutexLock lock(&shared_->mu);
    Status status = Admit(context);
    if (!status.ok()) return status;
    EtcdState& state = shared_->state;
    const bool holds =
        std::all_of(request.compare().begin(), request.compare().end(),
                    [&](const auto& compare) { return state.Holds(compare); });
    reply->set_succeeded(holds);
    const auto& operations = holds ? request.success() : request.failure();
    const bool writes = std::any_of(
        operations.begin(), operations.end(),
        [](const auto& operation) { return operation.has_request_put(); });
    if (writes) {
      ++state.revision;
      *delay = delay_of_writes_;
    }
    for (const etcdserverpb::RequestOp& operation : operations) {
      etcdserverpb::ResponseOp* const answer = reply->add_responses();
      if (operation.has_request_put()) {
        const etcdserverpb::PutRequest& put = operation.request_put();
        state.Put(put.key(), put.value(), put.lease());
        answer->mutable_response_put();
      } else {
        state.Read(operation.request_range(), answer->mutable_response_range());
      }
    }
    Fill(reply->mutable_header());
    if (loses_answer_) {
      loses_answer_ = false;
      return Away();
    }
    return Status::OK;
  }

  Status LeaseGrant(ServerContext* context,
                    const etcdserverpb::LeaseGrantRequest* request,
                    etcdserverpb::LeaseGrantResponse* reply) override {
    absl::MutexLock lock(&shared_->mu);
    Status status = Admit(*context);
    if (!status.ok()) return status;
    const int64_t id = ++shared_->state.last_lease;
    shared_->state.leases[id] = request->ttl();
    reply->set_id(id);
    reply->set_ttl(request->ttl());
    Fill(reply->mutable_header());
    return Status::OK;
  }

  Status LeaseRevoke(ServerContext* context,
                     const etcdserverpb::LeaseRevokeRequest* request,
                     etcdserverpb::LeaseRevokeResponse* reply) override {
    absl::MutexLock lock(&shared_->mu);
    Status status = Admit(*context);
    if (!status.ok()) return status;
    if (shared_->state.leases.count(request->id()) == 0) {
      return {grpc::StatusCode::NOT_FOUND, "requested lease not found"};
    }
    EndLease(request->id());
    Fill(reply->mutable_header());
    return Status::OK;
  }

  Status LeaseKeepAlive(
      ServerContext* context,
      grpc::ServerReaderWriter<etcdserverpb::LeaseKeepAliveResponse,
                               etcdserverpb::LeaseKeepAliveRequest>* stream)
      override {
    etcdserverpb::LeaseKeepAliveRequest request;
    while (stream->Read(&request)) {
      etcdserverpb::LeaseKeepAliveResponse reply;
      {
        absl::MutexLock lock(&shared_->mu);
        Status status = Admit(*context);
        if (!status.ok()) return status;
        const auto lease = shared_->state.leases.find(request.id());
        reply.set_id(request.id());
        if (lease != shared_->state.leases.end()) reply.set_ttl(lease->second);
        Fill(reply.mutable_header());
      }
      stream->Write(reply);
    }
    return Status::OK;
  }

  Status Watch(
      ServerContext* context,
      grpc::ServerReaderWriter<etcdserverpb::WatchResponse,
                               etcdserverpb::WatchRequest>* stream) override {
    etcdserverpb::WatchRequest request;
    if (!stream->Read(&request)) return Status::OK;
    const etcdserverpb::WatchCreateRequest& create = request.create_request();
    int64_t next = create.start_revision();
    etcdserverpb::WatchResponse response;
    int generation;
    {
      absl::MutexLock lock(&shared_->mu);
      Status status = Admit(*context);
      if (!status.ok() &&
          status.error_code() != grpc::StatusCode::UNAUTHENTICATED)
        return status;
      generation = generation_;
      Fill(response.mutable_header());
      response.set_created(true);
      if (!status.ok()) {  // etcd refuses the user in a message
        response.set_canceled(true);
        response.set_cancel_reason(status.error_message());
      } else {
        ++watches_;
      }
    }
    stream->Write(response);
    if (response.canceled()) return Status::OK;
    while (!context->IsCancelled()) {
      response.Clear();
      {
        absl::MutexLock lock(&shared_->mu);
        if (is_away_ || generation != generation_) return Away();
        if (next <= shared_->state.compacted) {
          response.set_canceled(true);
          response.set_compact_revision(shared_->state.compacted + 1);
        }
        shared_->state.AddEvents(create, next, &response);
        Fill(response.mutable_header());
        if (!response.canceled() && response.events().empty()) {
          changed_.WaitWithTimeout(&shared_->mu, kLookEvery);
          continue;
        }
        next = shared_->state.revision + 1;
      }
      stream->Write(response);
      if (response.canceled()) return Status::OK;
    }
    return Status::OK;
  }

  Status Authenticate(ServerContext*,
                      const etcdserverpb::AuthenticateRequest* request,
                      etcdserverpb::AuthenticateResponse* reply) override {
    absl::MutexLock lock(&shared_->mu);
    if (is_away_) return Away();
    if (user_.empty()) {
      return {grpc::StatusCode::FAILED_PRECONDITION,
              "etcdserver: authentication is not enabled"};
    }
    if (request->name() != user_ || request->password() != password_) {
      return {grpc::StatusCode::INVALID_ARGUMENT,
              "etcdserver: authentication failed, invalid user ID or password"};
    }
    token_ = absl::StrCat("token", ++tokens_);
    reply->set_token(token_);
    Fill(reply->mutable_header());
    return Status::OK;
  }

 private:
  friend class FakeEtcd;

  static Status Away() {
    return {grpc::StatusCode::UNAVAILABLE, "the fake etcd is away"};
  }

  Status Admit(const ServerContext& context) {
    if (is_away_) {
      ++refused_;
      return Away();
    }
    if (failure_ != grpc::StatusCode::OK) {
      return {failure_, "the fake etcd fails"};
    }
    if (user_.empty()) return Status::OK;
    const auto token = context.client_metadata().find("token");
    if (token == context.client_metadata().end()) {
      return {grpc::StatusCode::INVALID_ARGUMENT,
              "etcdserver: user name is empty"};
    }
    if (token_.empty() || token->second != token_) {
      return {grpc::StatusCode::UNAUTHENTICATED,
              "etcdserver: invalid auth token"};
    }
    return Status::OK;
  }

  void Fill(etcdserverpb::ResponseHeader* header) const
      ABSL_NO_THREAD_SAFETY_ANALYSIS {
    const EtcdState& state = shared_->state;
    header->set_cluster_id(cluster_lie_ != 0 ? cluster_lie_ : state.cluster_id);
    header->set_revision(revision_lie_ != 0 ? revision_lie_ : state.revision);
  }

  void EndLease(int64_t id) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    shared_->state.EndLease(id);
    changed_.SignalAll();
  }

  // All members below are guarded by shared_->mu.
  Shared* const shared_;
  mutable absl::CondVar changed_;
  bool is_away_ = false;
  grpc::StatusCode failure_ = grpc::StatusCode::OK;
  bool loses_answer_ = false;
  absl::Duration delay_of_writes_;
  int generation_ = 0;  // of streams
  int reads_ = 0;
  int refused_ = 0;  // calls while etcd was away
  int watches_ = 0;
  int tokens_ = 0;
  uint64_t cluster_lie_ = 0;
  int64_t revision_lie_ = 0;
  std::string user_;
  std::string password_;
  std::string token_;  // the valid one
};

FakeEtcd::FakeEtcd(FakeEtcd* other)
    : shared_(other != nullptr ? other->shared_ : std::make_shared<Shared>()),
      services_(std::make_unique<Services>(shared_.get())) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port_);
  builder.RegisterService(
      static_cast<etcdserverpb::KV::Service*>(services_.get()));
  builder.RegisterService(
      static_cast<etcdserverpb::Lease::Service*>(services_.get()));
  builder.RegisterService(
      static_cast<etcdserverpb::Watch::Service*>(services_.get()));
  builder.RegisterService(
      static_cast<etcdserverpb::Auth::Service*>(services_.get()));
  server_ = builder.BuildAndStart();
}

FakeEtcd::~FakeEtcd() {
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
}

std::string FakeEtcd::address() const {
  return absl::StrCat("127.0.0.1:", port_);
}

Client::Options FakeEtcd::ClientOptions() const {
  Client::Options options;
  options.endpoints = {address()};
  options.patience = absl::Seconds(1);
  return options;
}

void FakeEtcd::SetAway(bool is_away) {
  absl::MutexLock lock(&shared_->mu);
  services_->is_away_ = is_away;
  services_->changed_.SignalAll();
}

void FakeEtcd::FailWith(grpc::StatusCode code) {
  absl::MutexLock lock(&shared_->mu);
  services_->failure_ = code;
}

void FakeEtcd::LoseNextAnswer() {
  absl::MutexLock lock(&shared_->mu);
  services_->loses_answer_ = true;
}

void FakeEtcd::DelayAnswersOfWrites(absl::Duration delay) {
  absl::MutexLock lock(&shared_->mu);
  services_->delay_of_writes_ = delay;
}

void FakeEtcd::LieOfCluster(uint64_t cluster_id) {
  absl::MutexLock lock(&shared_->mu);
  services_->cluster_lie_ = cluster_id;
}

void FakeEtcd::LieOfRevision(int64_t revision) {
  absl::MutexLock lock(&shared_->mu);
  services_->revision_lie_ = revision;
}

void FakeEtcd::RequireUser(const std::string& name,
                           const std::string& password) {
  absl::MutexLock lock(&shared_->mu);
  services_->user_ = name;
  services_->password_ = password;
}

void FakeEtcd::ForgetTokens() {
  absl::MutexLock lock(&shared_->mu);
  services_->token_.clear();
}

EtcdState FakeEtcd::Save() const {
  absl::MutexLock lock(&shared_->mu);
  return shared_->state;
}

void FakeEtcd::Restore(const EtcdState& state) {
  absl::MutexLock lock(&shared_->mu);
  shared_->state = state;
  ++services_->generation_;
  services_->changed_.SignalAll();
}

void FakeEtcd::Put(const std::string& key, const std::string& value) {
  absl::MutexLock lock(&shared_->mu);
  ++shared_->state.revision;
  shared_->state.Put(key, value, /*lease=*/0);
  services_->changed_.SignalAll();
}

void FakeEtcd::Delete(const std::string& key) {
  absl::MutexLock lock(&shared_->mu);
  ++shared_->state.revision;
  shared_->state.Delete(key);
  services_->changed_.SignalAll();
}

void FakeEtcd::ExpireLeases() {
  absl::MutexLock lock(&shared_->mu);
  while (!shared_->state.leases.empty()) {
    services_->EndLease(shared_->state.leases.begin()->first);
  }
}

void FakeEtcd::CompactAndEndStreams() {
  absl::MutexLock lock(&shared_->mu);
  shared_->state.compacted = shared_->state.revision;
  shared_->state.events.clear();
  ++services_->generation_;
  services_->changed_.SignalAll();
}

void FakeEtcd::EndStreams() {
  absl::MutexLock lock(&shared_->mu);
  ++services_->generation_;
  services_->changed_.SignalAll();
}

int FakeEtcd::reads() const {
  absl::MutexLock lock(&shared_->mu);
  return services_->reads_;
}

void FakeEtcd::AwaitRefusedCall() const {
  absl::MutexLock lock(&shared_->mu);
  while (services_->refused_ == 0) {
    services_->changed_.WaitWithTimeout(&shared_->mu, kLookEvery);
  }
}

void FakeEtcd::AwaitWatches(int count) const {
  absl::MutexLock lock(&shared_->mu);
  while (services_->watches_ < count) {
    services_->changed_.WaitWithTimeout(&shared_->mu, kLookEvery);
  }
}

}  // namespace penstock::ps::etcd
