#include "ps/service.h"

#include <functional>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "ps/ps.grpc.pb.h"
#include "tensor_service/calls.h"
#include "tensor_service/message.h"
#include "tensor_service/status.h"
#include "transport/base/steady_time.h"

namespace penstock::ps {
namespace {

using v1::AttendReply;
using v1::AwaitReply;
using v1::AwaitRequest;
using v1::DescribeRequest;
using v1::InitializeHeader;
using v1::InitializeReply;
using v1::JoinReply;
using v1::JoinRequest;
using v1::ParameterServer;
using v1::PullHeader;
using v1::PullRequest;
using v1::PushHeader;
using v1::PushReply;
using v1::ServerReport;
using v1::WorkerId;

// Bounds the memory that members can take. No cluster has so many workers.
constexpr uint32_t kMaxRank = 1 << 16;

absl::StatusOr<MemberId> MemberOf(const WorkerId& worker) {
  if (worker.rank() >= kMaxRank) {
    return absl::InvalidArgumentError("worker.rank is out of range");
  }
  return MemberId{worker.rank(), worker.incarnation()};
}

uint64_t MicrosSince(absl::Time start) {
  return absl::ToInt64Microseconds(base::SteadyNow() - start);
}

// Serves one Attend stream; deletes itself.
class AttendReactor final : public grpc::ServerReadReactor<v1::Heartbeat> {
 public:
  explicit AttendReactor(Server* server) : server_(server) {
    StartRead(&heartbeat_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) return End(absl::OkStatus());
    absl::StatusOr<MemberId> member = MemberOf(heartbeat_.worker());
    if (!member.ok()) return End(member.status());
    if (heartbeat_.leaving()) {
      server_->Leave(*member);
      member_known_ = false;
      return End(absl::OkStatus());
    }
    absl::Status alive = server_->Heartbeat(*member);
    if (!alive.ok()) return End(alive);
    member_ = *member;
    member_known_ = true;
    StartRead(&heartbeat_);
  }

  void OnDone() override { delete this; }

 private:
  void End(const absl::Status& status) {
    // If a stream ends without a good-bye, its worker counts as dead.
    if (member_known_) server_->Lost(member_);
    Finish(tensor::ToGrpc(status));
  }

  Server* const server_;
  v1::Heartbeat heartbeat_;
  MemberId member_;
  bool member_known_ = false;
};

// Answers when a wait at the server ends; deletes itself.
class WaitReactor final : public grpc::ServerUnaryReactor {
 public:
  // Fills in the reply. Called only if the wait ended well.
  using Reply = std::function<absl::Status(Server::Snapshot, uint64_t waited)>;

  WaitReactor(Server* server, Server::WaitSpec spec, Reply reply)
      : server_(server), reply_(std::move(reply)) {
    // gRPC learns of this object when the constructor has returned, so
    // OnCancel() finds the ticket. The callback may run before that, on another
    // thread; gRPC then keeps the Finish() until it knows the object.
    ticket_ = server->Wait(
        std::move(spec), [this](auto snapshot) { Done(std::move(snapshot)); });
  }

  void OnCancel() override { server_->Cancel(ticket_); }
  void OnDone() override { delete this; }

 private:
  void Done(absl::StatusOr<Server::Snapshot> snapshot) {
    absl::Status status = snapshot.status();
    if (status.ok()) {
      status = reply_(*std::move(snapshot), MicrosSince(start_));
    }
    Finish(tensor::ToGrpc(status));
  }

  Server* const server_;
  const Reply reply_;
  const absl::Time start_ = base::SteadyNow();
  uint64_t ticket_ = 0;
};

// Methods that carry tensors are raw: they bypass protobuf's parser.
using Base = ParameterServer::WithRawCallbackMethod_Initialize<
    ParameterServer::WithRawCallbackMethod_Push<
        ParameterServer::WithRawCallbackMethod_Pull<
            ParameterServer::WithCallbackMethod_Join<
                ParameterServer::WithCallbackMethod_Attend<
                    ParameterServer::WithCallbackMethod_Await<
                        ParameterServer::WithCallbackMethod_Describe<
                            ParameterServer::Service>>>>>>>;

class ServiceImpl final : public Base {
 public:
  explicit ServiceImpl(Server* server) : server_(server) {}

  grpc::ServerUnaryReactor* Join(grpc::CallbackServerContext* context,
                                 const JoinRequest* request,
                                 JoinReply* reply) override {
    return Finish(context, HandleJoin(*request, reply));
  }

  grpc::ServerReadReactor<v1::Heartbeat>* Attend(
      grpc::CallbackServerContext* context, AttendReply* reply) override {
    return new AttendReactor(server_);
  }

  grpc::ServerUnaryReactor* Initialize(grpc::CallbackServerContext* context,
                                       const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* reply) override {
    return Finish(context, HandleInitialize(*request, reply));
  }

  grpc::ServerUnaryReactor* Push(grpc::CallbackServerContext* context,
                                 const grpc::ByteBuffer* request,
                                 grpc::ByteBuffer* reply) override {
    return Finish(context, HandlePush(*request, reply));
  }

  grpc::ServerUnaryReactor* Await(grpc::CallbackServerContext* context,
                                  const AwaitRequest* request,
                                  AwaitReply* reply) override {
    Server::WaitSpec spec;
    spec.version = request->version();
    return new WaitReactor(
        server_, std::move(spec),
        [reply](const Server::Snapshot& now, uint64_t waited) {
          reply->set_version(now.version);
          reply->set_waited_us(waited);
          return absl::OkStatus();
        });
  }

  grpc::ServerUnaryReactor* Pull(grpc::CallbackServerContext* context,
                                 const grpc::ByteBuffer* request,
                                 grpc::ByteBuffer* reply) override;

  grpc::ServerUnaryReactor* Describe(grpc::CallbackServerContext* context,
                                     const DescribeRequest* request,
                                     ServerReport* reply) override {
    Server::Report report = server_->report();
    reply->set_initialized(report.initialized);
    reply->set_version(report.version);
    reply->set_live_workers(report.live_workers);
    reply->set_workers_lost(report.workers_lost);
    reply->set_pushes_counted(report.pushes_counted);
    reply->set_pushes_not_counted(report.pushes_not_counted);
    reply->set_pushes_refused(report.pushes_refused);
    reply->set_variable_bytes(report.variable_bytes);
    return Finish(context, absl::OkStatus());
  }

 private:
  static grpc::ServerUnaryReactor* Finish(grpc::CallbackServerContext* context,
                                          const absl::Status& status) {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(tensor::ToGrpc(status));
    return reactor;
  }

  absl::Status HandleJoin(const JoinRequest& request, JoinReply* reply);
  absl::Status HandleInitialize(const grpc::ByteBuffer& request,
                                grpc::ByteBuffer* reply);
  absl::Status HandlePush(const grpc::ByteBuffer& request,
                          grpc::ByteBuffer* reply);

  Server* const server_;
};

absl::Status ServiceImpl::HandleJoin(const JoinRequest& request,
                                     JoinReply* reply) {
  absl::StatusOr<MemberId> member = MemberOf(request.worker());
  if (!member.ok()) return member.status();
  absl::StatusOr<uint64_t> version = server_->Join(*member);
  if (!version.ok()) return version.status();
  reply->set_version(*version);
  reply->set_lease_us(absl::ToInt64Microseconds(server_->lease()));
  return absl::OkStatus();
}

absl::Status ServiceImpl::HandleInitialize(const grpc::ByteBuffer& request,
                                           grpc::ByteBuffer* reply) {
  tensor::Message<InitializeHeader> message;
  absl::Status status = tensor::Decode(request, &message);
  if (!status.ok()) return status;
  absl::StatusOr<MemberId> member = MemberOf(message.header.worker());
  if (!member.ok()) return member.status();
  absl::StatusOr<bool> taken = server_->Initialize(*member, message.bundle);
  if (!taken.ok()) return taken.status();
  InitializeReply answer;
  answer.set_taken(*taken);
  *reply = tensor::FromProto(answer);
  return absl::OkStatus();
}

absl::Status ServiceImpl::HandlePush(const grpc::ByteBuffer& request,
                                     grpc::ByteBuffer* reply) {
  tensor::Message<PushHeader> message;
  absl::Status status = tensor::Decode(request, &message);
  if (!status.ok()) return status;
  absl::StatusOr<MemberId> member = MemberOf(message.header.worker());
  if (!member.ok()) return member.status();
  absl::StatusOr<Server::PushResult> result =
      server_->Push(*member, message.header.step(), message.bundle);
  if (!result.ok()) return result.status();
  PushReply answer;
  answer.set_counted(result->counted);
  answer.set_version(result->version);
  *reply = tensor::FromProto(answer);
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* ServiceImpl::Pull(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* reply) {
  PullRequest pull;
  absl::Status status = tensor::ToProto(*request, &pull);
  if (!status.ok()) return Finish(context, status);
  Server::WaitSpec spec;
  spec.version = pull.min_version();
  spec.want_variables = true;
  spec.names.assign(pull.names().begin(), pull.names().end());
  return new WaitReactor(
      server_, std::move(spec),
      [reply](Server::Snapshot now, uint64_t waited) -> absl::Status {
        tensor::Message<PullHeader> message;
        message.header.set_version(now.version);
        message.header.set_waited_us(waited);
        message.bundle = std::move(now.variables);
        absl::StatusOr<grpc::ByteBuffer> bytes = tensor::Encode(message);
        if (!bytes.ok()) return bytes.status();
        *reply = *std::move(bytes);
        return absl::OkStatus();
      });
}

}  // namespace

std::unique_ptr<grpc::Service> MakeService(Server* server) {
  return std::make_unique<ServiceImpl>(server);
}

}  // namespace penstock::ps
