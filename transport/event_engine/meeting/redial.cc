#include "transport/event_engine/meeting/redial.h"

#include <utility>

#include "transport/fabric/attempt.h"

namespace penstock {
namespace event_engine {

// Stops the attempts when destroyed, even while an answer is in flight.
class Redial::Handle : public fabric::PendingConnect {
 public:
  explicit Handle(std::shared_ptr<Redial> redial)
      : redial_(std::move(redial)) {}
  ~Handle() override {
    redial_->loop_->Post([redial = redial_] { redial->StopOnLoop(); });
  }

 private:
  const std::shared_ptr<Redial> redial_;
};

Redial::Redial(progress::EventLoop* loop, Dial dial,
               std::vector<absl::Duration> pauses, fabric::ConnectCallback done)
    : loop_(loop),
      dial_(std::move(dial)),
      pauses_(std::move(pauses)),
      done_(std::move(done)) {}

std::unique_ptr<fabric::PendingConnect> Redial::Start(
    Dial dial, std::vector<absl::Duration> pauses,
    fabric::ConnectCallback done) {
  absl::StatusOr<progress::EventLoop*> loop = progress::EventLoop::Get();
  if (!loop.ok()) {
    return fabric::FailLater(
        std::make_shared<fabric::Attempt>("", std::move(done)), loop.status());
  }
  std::shared_ptr<Redial> redial(
      new Redial(*loop, std::move(dial), std::move(pauses), std::move(done)));
  (*loop)->Post([redial] { redial->DialOnLoop(); });
  return std::make_unique<Handle>(redial);
}

// Handles the answer later, because the attempt may answer within dial_().
void Redial::DialOnLoop() {
  if (done_ == nullptr) return;
  ++dialed_;
  auto answered =
      [self = shared_from_this()](
          absl::StatusOr<std::unique_ptr<fabric::Endpoint>> answer) {
        auto shared =
            std::make_shared<absl::StatusOr<std::unique_ptr<fabric::Endpoint>>>(
                std::move(answer));
        self->loop_->Post(
            [self, shared] { self->OnAnswerOnLoop(std::move(*shared)); });
      };
  pending_ = dial_(std::move(answered));
}

void Redial::OnAnswerOnLoop(
    absl::StatusOr<std::unique_ptr<fabric::Endpoint>> answer) {
  if (done_ == nullptr) return;
  pending_.reset();
  if (answer.ok() || dialed_ > pauses_.size()) {
    fabric::ConnectCallback done = std::move(done_);
    done_ = nullptr;
    done(std::move(answer));
    return;
  }
  loop_->RunAfter(pauses_[dialed_ - 1],
                  [self = shared_from_this()] { self->DialOnLoop(); });
}

void Redial::StopOnLoop() {
  done_ = nullptr;
  pending_.reset();
}

}  // namespace event_engine
}  // namespace penstock
