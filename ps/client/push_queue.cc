#include "ps/client/push_queue.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tensor_service/calls.h"
#include "tensor_service/message.h"

namespace penstock::ps {
namespace {

// Caps the remembered answers to pulls whose step is never pushed.
constexpr size_t kMaxPulledSteps = 1024;

}  // namespace

bool Pushed::counted() const {
  return std::all_of(verdicts.begin(), verdicts.end(), [](PushVerdict verdict) {
    return verdict == PushVerdict::kCounted;
  });
}

PushQueue::PushQueue(const Puller& puller, size_t server, uint64_t clock)
    : puller_(puller),
      server_(server),
      may_be_ahead_(puller.connection->least_staleness() !=
                    ConsistencyPolicy::kUnlimited),
      next_(clock) {}

uint64_t PushQueue::ClockForLocked(uint64_t step) const {
  return std::max(step, next_);
}

uint64_t PushQueue::ClockFor(uint64_t step) const {
  absl::MutexLock lock(&mu_);
  return ClockForLocked(step);
}

void PushQueue::OnPulled(uint64_t step, const PullAnswer& answer) {
  absl::MutexLock lock(&mu_);
  PullAnswer& first = pulled_.insert({step, answer}).first->second;
  first.clock = std::min(first.clock, answer.clock);
  first.waited_for_all |= answer.waited_for_all;
  while (pulled_.size() > kMaxPulledSteps) pulled_.erase(pulled_.begin());
}

void PushQueue::OnJoined(uint64_t clock) {
  absl::MutexLock lock(&mu_);
  next_ = std::max(next_, clock);
}

void PushQueue::Push(uint64_t step, const tensor::Bundle& gradients,
                     absl::Time deadline, Done done) {
  Pending* first = nullptr;
  {
    absl::MutexLock lock(&mu_);
    const auto pulled = pulled_.find(step);
    const bool was_pulled = pulled != pulled_.end();
    const uint64_t clock =
        was_pulled ? pulled->second.clock : ClockForLocked(step);
    const bool must_wait =
        may_be_ahead_ && !(was_pulled && pulled->second.waited_for_all);
    pulled_.erase(pulled_.begin(), pulled_.upper_bound(step));
    // Begin() gives a repeated push the clock of the first attempt.
    if (last_step_ != step) next_ = std::max(next_, clock + 1);
    last_step_ = step;
    pending_.push_back(
        {step, clock, must_wait, gradients, deadline, std::move(done)});
    if (pending_.size() == 1) first = &pending_.front();
  }
  if (first != nullptr) Begin(first);
}

void PushQueue::Begin(Pending* push) {
  {
    absl::MutexLock lock(&mu_);
    if (sent_.has_value() && sent_->step == push->step) {
      push->clock = sent_->clock;
      push->must_wait = false;
    }
  }
  if (push->must_wait) return Wait(push);
  Send(push);
}

void PushQueue::Wait(Pending* push) {
  tensor::Message<v1::PullHeader> message;
  *message.header.mutable_view() = puller_.connection->view();
  *message.header.mutable_worker() = *puller_.worker;
  message.header.set_clock(push->clock);
  auto bytes = tensor::Encode(message);
  if (!bytes.ok()) return Fail(*push, bytes.status());
  PatientCall::Start(puller_.loop,
                     {puller_.connection->channels()[server_],
                      absl::StrCat(kServicePath, "Pull"), *std::move(bytes),
                      push->deadline, nullptr},
                     puller_.rejoin(server_),
                     [this, push](const CallLoop::Reply& reply, int) {
                       tensor::Message<v1::PullReplyHeader> answer;
                       absl::Status status = reply.status();
                       if (status.ok())
                         status = tensor::Decode(*reply, &answer);
                       if (!status.ok()) return End(Explain(*push, status));
                       push->clock =
                           std::max(push->clock, answer.header.clock());
                       OnJoined(push->clock + 1);
                       Send(push);
                     },
                     {[this, push] { return Named(*push); }});
}

absl::StatusOr<grpc::ByteBuffer> PushQueue::Encode(const Pending& push) const {
  tensor::Message<v1::PushHeader> message;
  *message.header.mutable_view() = puller_.connection->view();
  *message.header.mutable_worker() = *puller_.worker;
  message.header.set_clock(push.clock);
  message.bundle = push.gradients;
  return tensor::Encode(message);
}

void PushQueue::Send(Pending* push) {
  {
    absl::MutexLock lock(&mu_);
    sent_ = {push->step, push->clock};
  }
  auto bytes = Encode(*push);
  if (!bytes.ok()) return Fail(*push, bytes.status());
  PatientCall::Start(puller_.loop,
                     {puller_.connection->channels()[server_],
                      absl::StrCat(kServicePath, "Push"), *std::move(bytes),
                      push->deadline, nullptr},
                     puller_.rejoin(server_),
                     [this, push](const CallLoop::Reply& reply, int attempts) {
                       absl::StatusOr<PushVerdict> verdict =
                           Read(reply, attempts);
                       if (!verdict.ok())
                         verdict = Explain(*push, verdict.status());
                       End(std::move(verdict));
                     },
                     {[this, push] { return Named(*push); }});
}

// Reads a server's verdict. After a lost answer, kDuplicate means that the
// attempt whose answer was lost has counted.
absl::StatusOr<PushVerdict> PushQueue::Read(const CallLoop::Reply& reply,
                                            int attempts) const {
  if (!reply.ok()) return reply.status();
  v1::PushReply answer;
  absl::Status status = tensor::ToProto(*reply, &answer);
  if (!status.ok()) return status;
  switch (answer.verdict()) {
    case v1::PushReply::COUNTED:
      return PushVerdict::kCounted;
    case v1::PushReply::DUPLICATE:
      return attempts > 1 ? PushVerdict::kCounted : PushVerdict::kDuplicate;
    case v1::PushReply::LATE:
      return PushVerdict::kLate;
    default:
      return absl::InternalError(
          absl::StrCat("unknown verdict ", answer.verdict()));
  }
}

// Posts the end, because Fail() runs on any thread: the callback must not come
// within Push().
void PushQueue::Fail(const Pending& push, const absl::Status& error) {
  puller_.loop->Post([this, status = Explain(push, error)] { End(status); });
}

void PushQueue::End(absl::StatusOr<PushVerdict> verdict) {
  Done done;
  Pending* next = nullptr;
  {
    absl::MutexLock lock(&mu_);
    done = std::move(pending_.front().done);
    const bool is_last = pending_.size() == 1;
    if (is_last && absl::IsInvalidArgument(verdict.status())) {
      ForgetLocked(pending_.front());
    }
    pending_.pop_front();
    if (!pending_.empty()) next = &pending_.front();
  }
  if (next != nullptr) Begin(next);
  done(std::move(verdict));
}

// Resets the clock. Otherwise a pull for the step would ask for the next step,
// and wait for this worker itself.
void PushQueue::ForgetLocked(const Pending& push) {
  next_ = push.clock;
  last_step_.reset();
  sent_.reset();
}

std::string PushQueue::Named(const Pending& push) const {
  return absl::StrCat("push of step ", push.step, ": ",
                      puller_.connection->NameOf(server_));
}

absl::Status PushQueue::Explain(const Pending& push,
                                const absl::Status& error) const {
  return puller_.connection->Explain(absl::StrCat("push of step ", push.step),
                                     server_, error);
}

}  // namespace penstock::ps
