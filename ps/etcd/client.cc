#include "ps/etcd/client.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "grpcpp/create_channel.h"
#include "ps/etcd/errors.h"
#include "tensor_service/calls.h"
#include "third_party/etcd/rpc.grpc.pb.h"
#include "transport/base/steady_time.h"

namespace penstock::ps::etcd {
namespace {

// The pause after all endpoints have failed.
constexpr absl::Duration kPause = absl::Milliseconds(200);
// The interval of a stream's keepalive pings, and the timeout of a ping. The
// stream of a dead endpoint thus ends after the sum of both. etcd refuses pings
// more often than every 5 s.
constexpr absl::Duration kPingEvery = absl::Seconds(10);
constexpr absl::Duration kPongWithin = absl::Seconds(5);
constexpr absl::Duration kConnectWithin = absl::Seconds(5);
constexpr absl::Duration kMaxReconnect = absl::Seconds(1);

grpc::ChannelArguments Arguments() {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS,
                   static_cast<int>(absl::ToInt64Milliseconds(kPingEvery)));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                   static_cast<int>(absl::ToInt64Milliseconds(kPongWithin)));
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  // Sets the timeout of a connection attempt, which gRPC derives from this
  // argument.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS,
                   static_cast<int>(absl::ToInt64Milliseconds(kConnectWithin)));
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS,
                   static_cast<int>(absl::ToInt64Milliseconds(kMaxReconnect)));
  // Gives each client its own connection, so that each has its own keepalive.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return arguments;
}

}  // namespace

std::string EndOfPrefix(std::string prefix) {
  while (!prefix.empty() && static_cast<unsigned char>(prefix.back()) == 0xff) {
    prefix.pop_back();
  }
  // Returns the end of the range of all keys.
  if (prefix.empty()) return std::string(1, '\0');
  prefix.back() = static_cast<char>(prefix.back() + 1);
  return prefix;
}

Client::Client(Options options) : options_(std::move(options)) {
  const auto security = options_.security != nullptr
                            ? options_.security
                            : grpc::InsecureChannelCredentials();
  for (const std::string& name : options_.endpoints) {
    channels_.push_back(grpc::CreateCustomChannel(name, security, Arguments()));
  }
}

std::string Client::names() const {
  return absl::StrJoin(options_.endpoints, ", ");
}

Client::Endpoint Client::endpoint() const {
  absl::MutexLock lock(&mu_);
  return {current_, options_.endpoints[current_], channels_[current_]};
}

void Client::MoveOn(size_t index) {
  absl::MutexLock lock(&mu_);
  if (current_ == index) current_ = (index + 1) % channels_.size();
}

bool Client::ForgetToken(const grpc::Status& status) {
  if (options_.user.empty() || !IsTokenRefused(status)) return false;
  absl::MutexLock lock(&mu_);
  token_.clear();
  return true;
}

absl::StatusOr<std::string> Client::Token(const Endpoint& endpoint,
                                          Cancel* cancel) {
  {
    absl::MutexLock lock(&mu_);
    if (!token_.empty()) return token_;
  }
  grpc::ClientContext context;
  const Cancel::Scope scope(cancel, &context);
  context.set_deadline(tensor::DeadlineAfter(options_.patience));
  etcdserverpb::AuthenticateRequest request;
  request.set_name(options_.user);
  request.set_password(options_.password);
  etcdserverpb::AuthenticateResponse reply;
  const grpc::Status status = etcdserverpb::Auth::NewStub(endpoint.channel)
                                  ->Authenticate(&context, request, &reply);
  if (HasNoUsers(status)) return std::string();
  if (!status.ok()) return Explain(endpoint.name, "authenticate", status);
  absl::MutexLock lock(&mu_);
  token_ = reply.token();
  return token_;
}

absl::Status Client::Prepare(const Endpoint& endpoint,
                             grpc::ClientContext* context, Cancel* cancel) {
  // Makes a member without a leader refuse the call.
  context->AddMetadata("hasleader", "true");
  if (options_.user.empty()) return absl::OkStatus();
  const absl::StatusOr<std::string> token = Token(endpoint, cancel);
  if (!token.ok()) return token.status();
  if (!token->empty()) context->AddMetadata("token", *token);
  return absl::OkStatus();
}

absl::Status Client::TryOnce(const Operation& operation,
                             const Endpoint& endpoint, absl::Duration limit,
                             Cancel* cancel) {
  for (bool is_repeated = false;; is_repeated = true) {
    grpc::ClientContext context;
    const Cancel::Scope scope(cancel, &context);
    context.set_deadline(tensor::DeadlineAfter(limit));
    absl::Status status = Prepare(endpoint, &context, cancel);
    if (!status.ok()) return status;
    const int64_t floor = operation.is_linearizable ? history_.floor() : 0;
    const grpc::Status called = operation.attempt(endpoint.channel, &context);
    if (ForgetToken(called) && !is_repeated) continue;
    if (!called.ok()) return Explain(endpoint.name, operation.name, called);
    const bool has_written = operation.has_written && operation.has_written();
    status = history_.Check(operation.header(), floor + (has_written ? 1 : 0));
    if (status.ok()) return status;
    return absl::Status(status.code(), absl::StrCat("etcd at ", endpoint.name,
                                                    ": ", status.message()));
  }
}

absl::Status Client::Run(const Operation& operation, absl::Duration timeout,
                         Cancel* cancel) {
  const absl::Time end = base::SteadyNow() + timeout;
  Cancel never;
  // The error to return. An answer from the wrong etcd has the highest
  // priority, then a permanent error, then the last error.
  absl::Status worst;
  for (size_t failures = 1;; ++failures) {
    const Endpoint asked = endpoint();
    const absl::Duration limit =
        std::min(options_.patience, end - base::SteadyNow());
    absl::Status status = TryOnce(operation, asked, limit, cancel);
    if (cancel != nullptr && cancel->is_cancelled()) {
      return absl::CancelledError("etcd: cancelled");
    }
    if (status.ok() || IsFinal(status)) return status;
    if (worst.ok() || MayPass(worst) || absl::IsDataLoss(status)) {
      worst = std::move(status);
    }
    MoveOn(asked.index);
    grpc::experimental::ChannelResetConnectionBackoff(asked.channel.get());
    if (failures % channels_.size() != 0) continue;
    const bool is_over = base::SteadyNow() + kPause >= end;
    if (!MayPass(worst)) return worst;  // all endpoints were asked
    if (is_over) {
      return absl::UnavailableError(
          absl::StrCat("none of etcd's endpoints (", names(),
                       ") has answered within ", absl::FormatDuration(timeout),
                       "; the last error: ", worst.message()));
    }
    (cancel != nullptr ? cancel : &never)
        ->WaitUntil(base::SteadyNow() + kPause);
  }
}

absl::StatusOr<etcdserverpb::RangeResponse> Client::Range(
    const etcdserverpb::RangeRequest& request, absl::Duration timeout,
    Cancel* cancel) {
  etcdserverpb::RangeResponse reply;
  absl::Status status = Run(
      {"read",
       [&](const auto& channel, grpc::ClientContext* context) {
    reply.Clear();
    return etcdserverpb::KV::NewStub(channel)->Range(context, request, &reply);
       },
       [&]() -> const auto& { return reply.header();
}
}  // namespace penstock::ps::etcd
,
      timeout, cancel);
if (!status.ok()) return status;
return reply;
}

absl::StatusOr<etcdserverpb::RangeResponse> Client::ReadPrefix(
    const std::string& prefix, absl::Duration timeout, Cancel* cancel) {
  etcdserverpb::RangeRequest request;
  request.set_key(prefix);
  request.set_range_end(EndOfPrefix(prefix));
  return Range(request, timeout, cancel);
}

absl::StatusOr<etcdserverpb::TxnResponse> Client::Txn(
    const etcdserverpb::TxnRequest& request, absl::Duration timeout,
    Cancel* cancel) {
  etcdserverpb::TxnResponse reply;
  Operation operation;
  operation.name = "write";
  operation.attempt = [&](const auto& channel, grpc::ClientContext* context) {
    reply.Clear();
    return etcdserverpb::KV::NewStub(channel)->Txn(context, request, &reply);
  };
  operation.header = [&]() -> const auto& { return reply.header(); };
  operation.has_written = [&] {
    return std::any_of(
        reply.responses().begin(), reply.responses().end(),
        [](const auto& response) { return response.has_response_put(); });
  };
  absl::Status status = Run(operation, timeout, cancel);
  if (!status.ok()) return status;
  return reply;
}

absl::StatusOr<int64_t> Client::GrantLease(absl::Duration time_to_live,
                                           absl::Duration timeout,
                                           Cancel* cancel) {
  etcdserverpb::LeaseGrantRequest request;
  request.set_ttl(std::max<int64_t>(
      1, absl::ToInt64Seconds(absl::Ceil(time_to_live, absl::Seconds(1)))));
  etcdserverpb::LeaseGrantResponse reply;
  absl::Status status =
      Run({"grant a lease",
           [&](const auto& channel, grpc::ClientContext* context) {
    reply.Clear();
    return etcdserverpb::Lease::NewStub(channel)->LeaseGrant(context, request,
                                                             &reply);
           },
           [&]() -> const auto& { return reply.header();
}
,
    /*is_linearizable=*/false
},
          timeout, cancel);
if (!status.ok()) return status;
return reply.id();
}

absl::StatusOr<absl::Duration> Client::KeepLeaseAlive(int64_t lease,
                                                      absl::Duration timeout,
                                                      Cancel* cancel) {
  etcdserverpb::LeaseKeepAliveRequest request;
  request.set_id(lease);
  etcdserverpb::LeaseKeepAliveResponse reply;
  absl::Status status = Run(
      {"keep the lease alive",
       [&](const auto& channel, grpc::ClientContext* context) {
    reply.Clear();
    const auto stub = etcdserverpb::Lease::NewStub(channel);
    const auto stream = stub->LeaseKeepAlive(context);
    stream->Write(request);
    const bool is_read = stream->Read(&reply);
    stream->WritesDone();
    if (is_read) context->TryCancel();
    const grpc::Status ended = stream->Finish();
    if (is_read && reply.id() == lease) return grpc::Status::OK;
    return ended.ok() || is_read
               ? grpc::Status(grpc::StatusCode::UNAVAILABLE,
                              "etcd has not answered for this lease")
               : ended;
       },
       [&]() -> const auto& { return reply.header();
}
,
    /*is_linearizable=*/false
},
      timeout, cancel);
if (!status.ok()) return status;
if (reply.ttl() <= 0) {
  return absl::NotFoundError(
      "etcd: the lease has ended: it was not kept alive in time");
}
return absl::Seconds(reply.ttl());
}

absl::Status Client::RevokeLease(int64_t lease, absl::Duration timeout,
                                 Cancel* cancel) {
  etcdserverpb::LeaseRevokeRequest request;
  request.set_id(lease);
  etcdserverpb::LeaseRevokeResponse reply;
  absl::Status status =
      Run({"revoke the lease",
           [&](const auto& channel, grpc::ClientContext* context) {
    reply.Clear();
    return etcdserverpb::Lease::NewStub(channel)->LeaseRevoke(context, request,
                                                              &reply);
           },
           [&]() -> const auto& { return reply.header();
}
,
    /*is_linearizable=*/false
},
          timeout, cancel);
return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

}  // namespace penstock::ps::etcd
