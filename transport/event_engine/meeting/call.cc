#include "transport/event_engine/meeting/call.h"

#include <utility>

#include "absl/time/time.h"
#include "transport/fabric/attempt.h"
#include "transport/fabric/shm/connector.h"
#include "transport/fabric/shm/segment.h"
#include "transport/fabric/timed_setup.h"

namespace penstock {
namespace event_engine {
namespace {

// The pauses between rounds in which all names are asked. A server that is not
// busy accepts within a millisecond, and forgets the connection after two
// seconds.
constexpr absl::Duration kPauses[] = {
    absl::Milliseconds(1), absl::Milliseconds(20), absl::Milliseconds(300)};
constexpr size_t kRounds = sizeof kPauses / sizeof kPauses[0] + 1;

}  // namespace

// Stops the call when it is destroyed, even while an answer is on its way.
class MeetingCall::Handle : public fabric::PendingConnect {
 public:
  Handle(progress::EventLoop* loop, std::shared_ptr<MeetingCall> call)
      : loop_(loop), call_(std::move(call)) {}
  ~Handle() override {
    loop_->Post([call = call_] { call->StopOnLoop(); });
  }

 private:
  progress::EventLoop* const loop_;
  const std::shared_ptr<MeetingCall> call_;
};

MeetingCall::MeetingCall(progress::EventLoop* loop, std::string token,
                         std::vector<std::string> names,
                         fabric::shm::Options options,
                         fabric::ConnectCallback done)
    : loop_(loop),
      token_(std::move(token)),
      names_(std::move(names)),
      options_(std::move(options)),
      done_(std::move(done)) {}

std::unique_ptr<fabric::PendingConnect> MeetingCall::Start(
    const TcpAddress& client, const TcpAddress& server,
    fabric::shm::Options options, fabric::ConnectCallback done) {
  const std::string token = MeetingToken(client, server);
  absl::StatusOr<progress::EventLoop*> loop = progress::EventLoop::Get();
  absl::Status usable = loop.ok() ? fabric::shm::CheckKernel() : loop.status();
  if (!usable.ok()) {
    return fabric::FailLater(
        std::make_shared<fabric::Attempt>(token, std::move(done)), usable);
  }
  std::shared_ptr<MeetingCall> call(new MeetingCall(
      *loop, token, {MeetingName(server), MeetingName(server.Wildcard())},
      std::move(options), std::move(done)));
  (*loop)->Post([call] { call->AskOnLoop(); });
  return std::unique_ptr<fabric::PendingConnect>(new Handle(*loop, call));
}

void MeetingCall::AskOnLoop() {
  if (done_ == nullptr) return;
  auto attempt = std::make_shared<fabric::Attempt>(
      token_, [self = shared_from_this()](
                  absl::StatusOr<std::unique_ptr<fabric::Endpoint>> answer) {
        self->OnAnswerOnLoop(std::move(answer));
      });
  pending_ = fabric::TimedSetup::Launch(fabric::shm::Connector::Create(
      options_, loop_, {names_[asked_ % names_.size()], ""}, attempt));
}

void MeetingCall::OnAnswerOnLoop(
    absl::StatusOr<std::unique_ptr<fabric::Endpoint>> answer) {
  if (done_ == nullptr) return;
  ++asked_;
  const size_t round = asked_ / names_.size();
  if (answer.ok() || round == kRounds) {
    fabric::ConnectCallback done = std::move(done_);
    done_ = nullptr;
    done(std::move(answer));
    return;
  }
  const bool is_next_round = asked_ % names_.size() == 0;
  loop_->RunAfter(is_next_round ? kPauses[round - 1] : absl::ZeroDuration(),
                  [self = shared_from_this()] { self->AskOnLoop(); });
}

void MeetingCall::StopOnLoop() {
  done_ = nullptr;
  pending_.reset();
}

}  // namespace event_engine
}  // namespace penstock
