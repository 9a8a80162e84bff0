#include "ps/service/service.h"

#include <string>
#include <utility>

#include "absl/time/time.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "ps/model/wire.h"
#include "ps/service/attend.h"
#include "ps/service/base.h"
#include "ps/service/checkpoint_calls.h"
#include "ps/service/convert.h"
#include "ps/service/routes.h"
#include "ps/service/ticket_reactor.h"
#include "ps/wire/ps.grpc.pb.h"
#include "tensor_service/calls.h"
#include "tensor_service/message.h"
#include "tensor_service/status.h"
#include "transport/base/steady_time.h"

namespace penstock::ps {
namespace {

using grpc::ByteBuffer;
using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

class ServiceImpl final : public Base {
 public:
  ServiceImpl(Server* server, ServiceOptions options)
      : server_(server),
        options_(std::move(options)),
        routes_(server, options_.checkpoints, options_.shards) {}

  ServerUnaryReactor* Define(CallbackServerContext* context,
                             const v1::DefineRequest* request,
                             v1::DefineReply* reply) override {
    absl::Status status = Check(*context, Permission::kTrain);
    if (status.ok()) status = routes_.CheckMayDefine(request->replaces());
    if (!status.ok()) return Finish(context, status);
    return define_calls_.Start(
        [=](Cancellation*) { return HandleDefine(*request, reply); });
  }

  ServerUnaryReactor* ChooseCut(CallbackServerContext* context,
                                const v1::ChooseCutRequest* request,
                                v1::ChooseCutReply* reply) override {
    absl::Status status = Check(*context, Permission::kTrain);
    if (status.ok()) status = routes_.CheckMayDefine(request->replaces());
    if (!status.ok()) return Finish(context, status);
    return define_calls_.Start([=](Cancellation*) {
      absl::Status claimed = routes_.ClaimFolder(request->replaces());
      if (!claimed.ok()) return claimed;
      const auto choice =
          server_->ChooseCut(request->run(), request->replaces());
      if (!choice.ok()) return choice.status();
      reply->set_run(choice->run);
      SetCut(choice->cut, reply);
      return absl::OkStatus();
    });
  }

  ServerUnaryReactor* GetModel(CallbackServerContext* context,
                               const v1::GetModelRequest* request,
                               v1::GetModelReply* reply) override;

  ServerUnaryReactor* Join(CallbackServerContext* context,
                           const v1::JoinRequest* request,
                           v1::JoinReply* reply) override {
    auto server = Route(context, Permission::kTrain);
    if (!server.ok()) return Finish(context, server.status());
    return new TicketReactor(*server, [&](TicketReactor* reactor) {
      return (*server)->StartJoin(
          ViewIn(request->view()), WorkerIn(request->worker()),
          [reactor, reply](const absl::StatusOr<Server::Joined>& joined) {
            if (joined.ok()) {
              reply->set_lease_us(absl::ToInt64Microseconds(joined->lease));
              reply->set_clock(joined->clock);
            }
            reactor->Finish(tensor::ToGrpc(joined.status()));
          });
    });
  }

  grpc::ServerReadReactor<v1::Heartbeat>* Attend(
      CallbackServerContext* context, v1::AttendReply* reply) override {
    const absl::Status allowed = Check(*context, Permission::kTrain);
    if (!allowed.ok()) {
      return ServeAttend(nullptr, absl::nullopt, &attendance_, allowed);
    }
    return ServeAttend(routes_.FinderOf(*context), routes_.ShardOf(*context),
                       &attendance_, allowed);
  }

  ServerUnaryReactor* Initialize(CallbackServerContext* context,
                                 const ByteBuffer* request,
                                 ByteBuffer* reply) override {
    absl::Status status = Check(*context, Permission::kTrain);
    if (status.ok()) status = routes_.CheckMayDefine(0);
    if (status.ok()) status = HandleInitialize(*request, reply);
    return Finish(context, status);
  }

  // Does not check the caller here: the replica checks that the sender is the
  // shard's primary.
  ServerUnaryReactor* Replicate(CallbackServerContext* context,
                                const ByteBuffer* request,
                                ByteBuffer* reply) override {
    absl::Status status = Check(*context, Permission::kAdminister);
    if (!status.ok()) return Finish(context, status);
    return routes_.Replicate(*request, reply);
  }

  ServerUnaryReactor* Push(CallbackServerContext* context,
                           const ByteBuffer* request,
                           ByteBuffer* reply) override;
  ServerUnaryReactor* Pull(CallbackServerContext* context,
                           const ByteBuffer* request,
                           ByteBuffer* reply) override;

  ServerUnaryReactor* Describe(CallbackServerContext* context,
                               const v1::DescribeRequest* request,
                               v1::ServerReport* reply) override {
    absl::Status status = Check(*context, Permission::kRead);
    if (!status.ok()) return Finish(context, status);
    const auto server = routes_.ServerOf(*context);
    const auto writer = routes_.WriterOf(*context);
    *reply = ToMessage(ReportOf(server.ok() ? **server : *server_,
                                writer.ok() ? writer->get() : nullptr));
    if (options_.view) *reply->mutable_view() = options_.view();
    return Finish(context, absl::OkStatus());
  }

  ServerUnaryReactor* GetView(CallbackServerContext* context,
                              const v1::GetViewRequest* request,
                              v1::GetViewReply* reply) override {
    const absl::Status status = Check(*context, Permission::kRead);
    if (status.ok() && options_.view) *reply = options_.view();
    return Finish(context, status);
  }

  ServerUnaryReactor* BeginCheckpoint(CallbackServerContext* context,
                                      const v1::BeginCheckpointRequest* request,
                                      v1::CheckpointAttempt* reply) override {
    return StartCheckpointCall(
        context, &request->view(),
        [=](CheckpointWriter* writer, Cancellation* cancellation) {
          return ps::BeginCheckpoint(writer, *request, cancellation, reply);
        });
  }

  // Renews or ends a turn on the calling thread, so that this call does not
  // wait while a shard is written. Removes files on the checkpoints' thread.
  ServerUnaryReactor* AttendCheckpoint(
      CallbackServerContext* context,
      const v1::AttendCheckpointRequest* request,
      v1::AttendCheckpointReply* reply) override {
    const auto attend = [=](CheckpointWriter* writer, Cancellation*) {
      return ps::AttendCheckpoint(writer, *request);
    };
    const auto writer = CheckpointCall(*context, &request->view());
    if (!writer.ok()) return Finish(context, writer.status());
    if (request->give_up()) {
      EndTurn(writer->get(), *request);
      return StartCheckpointCall(context, &request->view(), attend);
    }
    return Finish(context, attend(writer->get(), nullptr));
  }

  // Runs on a separate thread, so that the call does not wait while a shard is
  // written. At a replica, the hold waits for its log.
  ServerUnaryReactor* HoldSteps(CallbackServerContext* context,
                                const v1::HoldStepsRequest* request,
                                v1::HoldStepsReply* reply) override {
    absl::Status status = CheckpointCall(*context, &request->view()).status();
    const auto leader = routes_.LeaderOf(*context);
    if (status.ok()) status = leader.status();
    if (!status.ok()) return Finish(context, status);
    if (*leader == nullptr) {
      return Finish(context, ps::HoldSteps(server_, *request, reply));
    }
    return hold_calls_.Of(routes_.ShardOf(*context))
        .Start([=, leader = *leader](Cancellation*) {
          return ps::HoldSteps(leader->cuts(), *request, reply);
        });
  }

  ServerUnaryReactor* WriteShard(CallbackServerContext* context,
                                 const v1::WriteShardRequest* request,
                                 v1::ShardInfo* reply) override {
    return StartCheckpointCall(
        context, &request->view(),
        [=](CheckpointWriter* writer, Cancellation* cancellation) {
          return ps::WriteShard(writer, *request, cancellation, reply);
        });
  }

  // Also commits at a server that drains. The work itself checks the run.
  ServerUnaryReactor* CommitCheckpoint(
      CallbackServerContext* context,
      const v1::CommitCheckpointRequest* request,
      v1::CommitCheckpointReply* reply) override {
    return StartCheckpointCall(
        context, nullptr, [=](CheckpointWriter* writer, Cancellation*) {
          return ps::CommitCheckpoint(writer, *request, reply);
        });
  }

 private:
  static ServerUnaryReactor* Finish(CallbackServerContext* context,
                                    const absl::Status& status) {
    ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(tensor::ToGrpc(status));
    return reactor;
  }

  absl::Status Check(const CallbackServerContext& context,
                     Permission permission) const {
    if (options_.access == nullptr) return absl::OkStatus();
    return options_.access->Check(context, permission);
  }

  // Returns the writer for a call about a checkpoint of `view` (null: any), or
  // null if there is no folder. First checks the peer's permission.
  absl::StatusOr<std::shared_ptr<CheckpointWriter>> CheckpointCall(
      const CallbackServerContext& context, const v1::View* view) const {
    absl::Status status = Check(context, Permission::kAdminister);
    if (!status.ok()) return status;
    if (view == nullptr) return routes_.WriterOf(context);
    const auto server = routes_.ServerOf(context);
    if (!server.ok()) return server.status();
    status = (*server)->TrainingOf(ViewIn(*view)).status();
    if (!status.ok()) return status;
    return routes_.WriterOf(context);
  }

  // Returns the object that handles calls for the shard of `context`. First
  // checks the peer's permission.
  absl::StatusOr<std::shared_ptr<Calls>> Route(
      const CallbackServerContext* context, Permission permission) const {
    absl::Status status = Check(*context, permission);
    if (!status.ok()) return status;
    return routes_.CallsOf(*context);
  }

  // Refuses calls for other trainings early. The work checks the view again,
  // because another run may begin while the work waits.
  ServerUnaryReactor* StartCheckpointCall(CallbackServerContext* context,
                                          const v1::View* view,
                                          CheckpointCalls::WriterWork work) {
    const auto writer = CheckpointCall(*context, view);
    if (!writer.ok()) return Finish(context, writer.status());
    return checkpoint_calls_.Of(routes_.ShardOf(*context))
        .Start(*writer, std::move(work));
  }

  absl::Status HandleDefine(const v1::DefineRequest& request,
                            v1::DefineReply* reply);
  absl::Status HandleInitialize(const ByteBuffer& request, ByteBuffer* reply);

  Server* const server_;
  const ServiceOptions options_;
  const Routes routes_;
  Attendance attendance_;
  CheckpointCallsOfShards checkpoint_calls_;
  CheckpointCallsOfShards hold_calls_;
  CheckpointCalls define_calls_;  // these calls read checkpoints
};

absl::Status ServiceImpl::HandleDefine(const v1::DefineRequest& request,
                                       v1::DefineReply* reply) {
  auto model = FromMessage(request.model());
  if (!model.ok()) return model.status();
  absl::Status can_define = routes_.CheckModel(*model);
  if (!can_define.ok()) return can_define;
  Server::Definition definition;
  definition.model = *std::move(model);
  definition.servers.assign(request.servers().begin(), request.servers().end());
  definition.server = request.server();
  definition.run = request.run();
  definition.replaces = request.replaces();
  definition.abandons = request.abandons();
  definition.instance = request.instance();
  if (request.has_cut()) {
    auto cut = CutIdIn(request.cut());
    if (!cut.ok()) return cut.status();
    definition.cut = *std::move(cut);
  }
  const auto defined = server_->Define(definition);
  if (!defined.ok()) return defined.status();
  reply->set_taken(defined->taken);
  reply->set_run(defined->run);
  reply->set_wants_values(defined->wants_values);
  SetCut(defined->cut, reply);
  return absl::OkStatus();
}

ServerUnaryReactor* ServiceImpl::GetModel(CallbackServerContext* context,
                                          const v1::GetModelRequest* request,
                                          v1::GetModelReply* reply) {
  absl::Status status = Check(*context, Permission::kRead);
  if (!status.ok()) return Finish(context, status);
  auto found = routes_.ServerOf(*context);
  if (!found.ok()) return Finish(context, found.status());
  const auto describe = [server = *found, reply] {
    const uint64_t instance = server->instance();  // first, as it may change
    const auto training = server->training();
    if (training != nullptr) *reply = ToMessage(*training);
    reply->set_instance(instance);
    if (training == nullptr) return;
    reply->set_has_values(server->has_values());
    reply->set_has_begun(server->has_begun());
    SetCut(server->restored(), reply);
  };
  if (!request->wait()) {
    describe();
    return Finish(context, absl::OkStatus());
  }
  return new TicketReactor(*found, [&](TicketReactor* reactor) {
    return (*found)->AwaitValues([reactor, describe](absl::Status ready) {
      if (ready.ok()) describe();
      reactor->Finish(tensor::ToGrpc(ready));
    });
  });
}

absl::Status ServiceImpl::HandleInitialize(const ByteBuffer& request,
                                           ByteBuffer* reply) {
  tensor::Message<v1::InitializeHeader> message;
  absl::Status status = tensor::Decode(request, &message);
  if (!status.ok()) return status;
  const auto taken =
      server_->Initialize(ViewIn(message.header.view()),
                          WorkerIn(message.header.worker()), message.bundle);
  if (!taken.ok()) return taken.status();
  v1::InitializeReply answer;
  answer.set_taken(*taken);
  *reply = tensor::FromProto(answer);
  return absl::OkStatus();
}

ServerUnaryReactor* ServiceImpl::Push(CallbackServerContext* context,
                                      const ByteBuffer* request,
                                      ByteBuffer* reply) {
  const auto server = Route(context, Permission::kTrain);
  absl::Status status = server.status();
  tensor::Message<v1::PushHeader> message;
  if (status.ok()) status = tensor::Decode(*request, &message);
  if (!status.ok()) return Finish(context, status);
  return new PushReactor(*server, [&](TicketReactor* reactor) {
    return (*server)->Push(
        ViewIn(message.header.view()), WorkerIn(message.header.worker()),
        message.header.clock(), message.bundle,
        [reactor, reply](absl::StatusOr<Server::PushVerdict> verdict) {
          if (verdict.ok()) {
            v1::PushReply answer;
            answer.set_verdict(ToMessage(*verdict));
            *reply = tensor::FromProto(answer);
          }
          reactor->Finish(tensor::ToGrpc(verdict.status()));
        },
        /*will_help=*/true);
  });
}

ServerUnaryReactor* ServiceImpl::Pull(CallbackServerContext* context,
                                      const ByteBuffer* request,
                                      ByteBuffer* reply) {
  const auto server = Route(context, Permission::kRead);
  absl::Status status = server.status();
  tensor::Message<v1::PullHeader> message;
  if (status.ok()) status = tensor::Decode(*request, &message);
  if (!status.ok()) return Finish(context, status);
  auto spec = PullIn(message.header, std::move(message.bundle));
  if (!spec.ok()) return Finish(context, spec.status());
  return new TicketReactor(*server, [&](TicketReactor* reactor) {
    return (*server)->Pull(
        ViewIn(message.header.view()), *spec,
        [reactor, reply,
         start = base::SteadyNow()](absl::StatusOr<Server::Pulled> pulled) {
          absl::Status answered = pulled.status();
          if (answered.ok()) {
            answered =
                Answer(*std::move(pulled), base::SteadyNow() - start, reply);
          }
          reactor->Finish(tensor::ToGrpc(answered));
        });
  });
}

}  // namespace

std::unique_ptr<grpc::Service> MakeService(Server* server,
                                           ServiceOptions options) {
  return std::make_unique<ServiceImpl>(server, std::move(options));
}

}  // namespace penstock::ps
