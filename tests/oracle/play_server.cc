#include "tests/oracle/exchange.h"
#include "tests/oracle/player.h"

namespace penstock::oracle {
namespace {

class ServerPlayer {
 public:
  ServerPlayer(const Plan& plan, ServerCall* call, Meeting* meeting,
               const std::function<void()>& settle, Outcome* outcome)
      : plan_(plan),
        call_(call),
        meeting_(meeting),
        exchange_(call, meeting, Side::kServer, /*peer_runs=*/true, settle,
                  &outcome->server_received) {}

  void Play() {
    if (plan_.initial_early) call_->SendInitialMetadata();
    for (size_t i = 0; i < plan_.phases.size(); ++i) {
      const Phase& phase = plan_.phases[i];
      if (!exchange_.Play(i, phase.down, phase.up, phase.late,
                          /*ends=*/false)) {
        // Returns any status. The call has ended, and the client already has
        // its status.
        return call_->Finish(grpc::Status(grpc::StatusCode::ABORTED, "over"));
      }
    }
    meeting_->Reach(Side::kServer, kPhasesDone);
    End();
  }

 private:
  void End() {
    switch (plan_.ending) {
      case Ending::kFinish:
      case Ending::kPastDeadline:
      case Ending::kRandomCancel:
      case Ending::kRandomDeadline:
        exchange_.Drain();
        return Finish();
      case Ending::kEarly:
        meeting_->Await(Side::kClient, SentPoint(plan_.phases.size()));
        return Finish();
      case Ending::kCancelBehind:
      case Ending::kDeadlineBehind:
        return Finish();
      case Ending::kClientCancels:
        meeting_->Await(Side::kClient, kPhasesDone);
        meeting_->CancelClient();
        return FinishCancelled();
      case Ending::kServerCancels:
        meeting_->Await(Side::kClient, kPhasesDone);
        call_->context()->TryCancel();
        return FinishCancelled();
      case Ending::kDeadline:
        return FinishCancelled();
    }
  }
  void FinishCancelled() {
    call_->AwaitCancelled();
    call_->Finish(grpc::Status(grpc::StatusCode::ABORTED, "cancelled"));
  }
  void Finish() {
    std::vector<Message> messages = plan_.last;
    const bool together =
        !messages.empty() && (plan_.coalesced || plan_.kind == Kind::kUnary ||
                              plan_.kind == Kind::kUpload);
    Message last;
    if (together) {
      last = messages.back();
      messages.pop_back();
    }
    exchange_.Send(plan_.phases.size(), messages, /*ends=*/false);
    meeting_->Reach(Side::kServer, kEnding);
    if (together) {
      call_->WriteAndFinish(ToBuffer(last), plan_.status);
    } else {
      call_->Finish(plan_.status);
    }
  }

  const Plan& plan_;
  ServerCall* const call_;
  Meeting* const meeting_;
  Exchange<ServerCall> exchange_;
};

}  // namespace

void PlayServer(const Plan& plan, ServerCall* call, Meeting* meeting,
                const std::function<void()>& settle, Outcome* outcome) {
  grpc::ServerContextBase* context = call->context();
  outcome->client_metadata = ToMetadata(context->client_metadata());
  for (const auto& each : plan.initial) {
    context->AddInitialMetadata(each.first, each.second);
  }
  for (const auto& each : plan.trailing) {
    context->AddTrailingMetadata(each.first, each.second);
  }
  if (plan.down_compression != GRPC_COMPRESS_NONE) {
    context->set_compression_algorithm(plan.down_compression);
  }
  ServerPlayer(plan, call, meeting, settle, outcome).Play();
  meeting->Leave(Side::kServer);
}

}  // namespace penstock::oracle
