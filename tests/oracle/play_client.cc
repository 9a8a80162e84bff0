#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "tests/oracle/exchange.h"
#include "tests/oracle/player.h"

namespace penstock::oracle {
namespace {

using Clock = std::chrono::system_clock;

Clock::time_point DeadlineOf(const Plan& plan) {
  const auto now = Clock::now();
  switch (plan.ending) {
    case Ending::kPastDeadline:
      return now - std::chrono::milliseconds(plan.wait_us % 1000);
    case Ending::kDeadline:
    case Ending::kDeadlineBehind:
    case Ending::kRandomDeadline:
      return now + std::chrono::microseconds(plan.wait_us);
    case Ending::kFinish:
    case Ending::kEarly:
    case Ending::kClientCancels:
    case Ending::kServerCancels:
    case Ending::kCancelBehind:
    case Ending::kRandomCancel:
      break;
  }
  return now + kPatience;
}

class ClientPlayer {
 public:
  ClientPlayer(const Plan& plan, const ClientParts& parts, Meeting* meeting,
               const std::function<void()>& settle, Outcome* outcome)
      : plan_(plan),
        context_(parts.context),
        meeting_(meeting),
        settle_(settle),
        call_(NewCall(plan, parts)),
        exchange_(call_.get(), meeting, Side::kClient, !plan.may_not_run,
                  settle, &outcome->received) {}

  grpc::Status Play() {
    if (!BeginsWithMessage()) AwaitInitialMetadata();
    if (PlayPhases()) End();
    exchange_.Drain();
    return call_->Finish();
  }

 private:
  bool BeginsWithMessage() const {
    return plan_.kind == Kind::kUnary || plan_.kind == Kind::kDownload;
  }
  void AwaitInitialMetadata() {
    if (plan_.waits_for_initial) call_->AwaitInitialMetadata();
  }
  bool PlayPhases() {
    const size_t count = plan_.phases.size();
    for (size_t i = 0; i < count; ++i) {
      if (i == plan_.half_close_after) HalfClose();
      const Phase& phase = plan_.phases[i];
      const bool ends = plan_.coalesced && i + 1 == plan_.half_close_after;
      if (!exchange_.Play(i, phase.up, phase.down, phase.late, ends)) {
        return false;
      }
      half_closed_ |= ends && !phase.up.empty();
      if (i == 0 && BeginsWithMessage()) AwaitInitialMetadata();
    }
    if (plan_.half_close_after == count) HalfClose();
    return true;
  }
  void HalfClose() {
    if (!std::exchange(half_closed_, true)) call_->WritesDone();
  }

  void End() {
    meeting_->Reach(Side::kClient, kPhasesDone);
    switch (plan_.ending) {
      case Ending::kEarly:
        exchange_.Send(plan_.phases.size(), plan_.unread, /*ends=*/false);
        return;
      case Ending::kCancelBehind:
        if (!AwaitEndBehind()) return;
        context_->TryCancel();
        return;
      case Ending::kDeadlineBehind:
        if (!AwaitEndBehind()) return;
        std::this_thread::sleep_until(context_->deadline() +
                                      std::chrono::milliseconds(20));
        return;
      case Ending::kClientCancels:  // when the server is so far: see there
      case Ending::kFinish:
      case Ending::kServerCancels:
      case Ending::kDeadline:
      case Ending::kPastDeadline:
      case Ending::kRandomCancel:
      case Ending::kRandomDeadline:
        return;
    }
  }
  // Waits until the status has arrived. The messages before the status stay
  // unread. Returns false if the call ends earlier.
  bool AwaitEndBehind() {
    const size_t last = plan_.phases.size();
    if (!exchange_.Receive(last, plan_.last_reads, /*late=*/false)) {
      return false;
    }
    meeting_->Await(Side::kServer, kEnding);
    settle_();
    settle_();
    return true;
  }

  const Plan& plan_;
  grpc::ClientContext* const context_;
  Meeting* const meeting_;
  const std::function<void()>& settle_;
  const std::unique_ptr<ClientCall> call_;
  Exchange<ClientCall> exchange_;
  bool half_closed_ = false;
};

void SetUp(const Plan& plan, grpc::ClientContext* context) {
  context->AddMetadata(kPlanKey, std::to_string(plan.number));
  for (const auto& each : plan.client_metadata) {
    context->AddMetadata(each.first, each.second);
  }
  context->set_deadline(DeadlineOf(plan));
  if (plan.up_compression != GRPC_COMPRESS_NONE) {
    context->set_compression_algorithm(plan.up_compression);
  }
  context->set_initial_metadata_corked(plan.corked);
}

}  // namespace

void PlayClient(const Plan& plan, const std::shared_ptr<grpc::Channel>& channel,
                grpc::CompletionQueue* queue, Meeting* meeting,
                const std::function<void()>& settle, Outcome* outcome) {
  grpc::ClientContext context;
  SetUp(plan, &context);
  meeting->Begin(&context);
  std::thread canceller;
  if (plan.ending == Ending::kRandomCancel) {
    canceller = std::thread([&] {
      meeting->CancelClientAfter(std::chrono::microseconds(plan.wait_us));
    });
  }
  {
    const ClientParts parts{channel, queue, MethodName(plan.server, plan.kind),
                            &context, plan.corked};
    ClientPlayer player(plan, parts, meeting, settle, outcome);
    outcome->status = player.Play();
  }
  meeting->Leave(Side::kClient);
  if (canceller.joinable()) canceller.join();
  outcome->initial = ToMetadata(context.GetServerInitialMetadata());
  outcome->trailing = ToMetadata(context.GetServerTrailingMetadata());
}

}  // namespace penstock::oracle
