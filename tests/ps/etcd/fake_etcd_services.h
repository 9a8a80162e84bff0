// The services of the fake etcd.

#ifndef PENSTOCK_TESTS_PS_ETCD_FAKE_ETCD_SERVICES_H_
#define PENSTOCK_TESTS_PS_ETCD_FAKE_ETCD_SERVICES_H_

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/ps/etcd/fake_etcd.h"
#include "third_party/etcd/rpc.grpc.pb.h"

namespace penstock::ps::etcd {

// The services of one endpoint.
class FakeEtcd::Services final : public etcdserverpb::KV::Service,
                                 public etcdserverpb::Lease::Service,
                                 public etcdserverpb::Watch::Service,
                                 public etcdserverpb::Auth::Service {
 public:
  using ServerContext = grpc::ServerContext;
  using Status = grpc::Status;

  // The time after which a watch checks again if its client is still connected.
  static constexpr absl::Duration kLookEvery = absl::Milliseconds(20);

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
    AwaitTurn(context, request);
    if (context.IsCancelled()) return Status::CANCELLED;
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
      if (!status.ok()) {  // etcd reports a refused user in a message
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
        if (!holds_events_) {
          shared_->state.AddEvents(create, next, &response);
        }
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
    return {grpc::StatusCode::UNAVAILABLE, "the fake etcd is unreachable"};
  }

  // Waits while the request would write the held key.
  void AwaitTurn(const ServerContext& context,
                 const etcdserverpb::TxnRequest& request)
      ABSL_NO_THREAD_SAFETY_ANALYSIS {
    const auto is_held = [this](const auto& operation) {
      return !held_key_.empty() && operation.request_put().key() == held_key_;
    };
    while (!context.IsCancelled() &&
           std::any_of(request.success().begin(), request.success().end(),
                       is_held)) {
      ++held_writes_;
      changed_.WaitWithTimeout(&shared_->mu, kLookEvery);
    }
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
  std::string held_key_;
  int held_writes_ = 0;
  bool holds_events_ = false;
  int generation_ = 0;  // of streams
  int reads_ = 0;
  int refused_ = 0;  // calls while etcd was unavailable
  int watches_ = 0;
  int tokens_ = 0;
  uint64_t cluster_lie_ = 0;
  int64_t revision_lie_ = 0;
  std::string user_;
  std::string password_;
  std::string token_;  // the valid one
};

}  // namespace penstock::ps::etcd

#endif  // PENSTOCK_TESTS_PS_ETCD_FAKE_ETCD_SERVICES_H_
