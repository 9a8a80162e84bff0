#include "ps/client/push_queue.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tensor_service/calls.h"
#include "tensor_service/message.h"

namespace penstock::ps {
namespace {

// Limits how many answers to pulls are remembered. A step that was pulled may
// never be pushed.
constexpr size_t kMaxPulledSteps = 1024;
// Limits the number of clocks that a push may skip. Servers have the same
// limit; see Coordinator.
constexpr uint64_t kMaxLead = 65536;

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
      most_skipped_(
          std::min(static_cast<uint64_t>(puller.connection->least_staleness()),
                   kMaxLead)),
      next_(clock),
      ended_(clock) {}

uint64_t PushQueue::ClockForLocked(uint64_t step) const {
  return std::max(step, next_);
}

uint64_t PushQueue::ClockFor(uint64_t step) const {
  absl::MutexLock lock(&mu_);
  return ClockForLocked(step);
}

uint64_t PushQueue::PushClockFor(uint64_t step) const {
  absl::MutexLock lock(&mu_);
  const auto pulled = pulled_.find(step);
  if (pulled == pulled_.end()) return ClockForLocked(step);
  // Uses the higher clock, because pulls for two steps may have the same answer
  // after the worker has joined again.
  return std::max(pulled->second.clock, handed_over_);
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
  ended_ = std::max(ended_, clock);
}

void PushQueue::Push(uint64_t step, uint64_t clock,
                     const tensor::Bundle& gradients, absl::Time deadline,
                     Done done) {
  Pending push{step,     clock,          0, may_be_ahead_, gradients,
               deadline, std::move(done)};
  {
    absl::MutexLock lock(&mu_);
    const auto pulled = pulled_.find(step);
    if (pulled != pulled_.end()) {
      push.next = pulled->second.clock;
      push.must_wait &= !pulled->second.waited_for_all || push.next < clock;
    } else {
      push.must_wait |= is_behind_;
    }
    is_behind_ = false;
    pulled_.erase(pulled_.begin(), pulled_.upper_bound(step));
    handed_over_ = std::max(handed_over_, clock + 1);
    next_ = std::max(next_, handed_over_);
  }
  Queue(std::move(push));
}

void PushQueue::CatchUp(uint64_t clock, absl::Time deadline) {
  {
    absl::MutexLock lock(&mu_);
    if (clock <= ended_) return;
    next_ = std::max(next_, clock);
  }
  Queue({absl::nullopt, clock - 1, 0, may_be_ahead_, tensor::Bundle(), deadline,
         [](const absl::StatusOr<PushVerdict>&) {}});
}

void PushQueue::Queue(Pending push) {
  Pending* first = nullptr;
  {
    absl::MutexLock lock(&mu_);
    pending_.push_back(std::move(push));
    if (pending_.size() == 1) first = &pending_.front();
  }
  if (first != nullptr) Begin(first);
}

void PushQueue::Begin(Pending* push) {
  {
    absl::MutexLock lock(&mu_);
    push->next = std::max(push->next, ended_);
    if (push->step.has_value() && sent_.has_value() &&
        sent_->step == *push->step) {
      push->next = push->clock = sent_->clock;
      push->must_wait = false;
    }
  }
  Proceed(push);
}

uint64_t PushQueue::NextClock(const Pending& push) const {
  return push.next >= push.clock || push.clock - push.next <= most_skipped_
             ? push.clock
             : push.next + most_skipped_;
}

void PushQueue::Proceed(Pending* push) {
  const uint64_t clock = NextClock(*push);
  const bool must_wait = clock < push->clock ? may_be_ahead_ : push->must_wait;
  if (must_wait) return Wait(push, clock);
  Send(push, clock);
}

void PushQueue::Wait(Pending* push, uint64_t clock) {
  tensor::Message<v1::PullHeader> message;
  *message.header.mutable_view() = puller_.connection->view();
  *message.header.mutable_worker() = *puller_.worker;
  message.header.set_clock(clock);
  auto bytes = tensor::Encode(message);
  if (!bytes.ok()) return Fail(*push, bytes.status());
  PatientCall::Start(
      puller_.loop,
      {puller_.connection->channels()[server_],
       absl::StrCat(kServicePath, "Pull"), *std::move(bytes), push->deadline,
       nullptr, puller_.connection->route(server_)},
      puller_.rejoin(server_),
      [this, push, clock](const CallLoop::Reply& reply, int) {
        tensor::Message<v1::PullReplyHeader> answer;
        absl::Status status = reply.status();
        if (status.ok()) status = tensor::Decode(*reply, &answer);
        if (!status.ok()) return End(Explain(*push, status));
        OnWaited(push, clock, answer.header.clock());
      },
      {[this, push] { return Named(*push); }});
}

// Handles the answer to a pull without values. Steps below the answered clock
// are over. A push to a single server skips to a later clock, because no other
// server has a different clock.
void PushQueue::OnWaited(Pending* push, uint64_t clock, uint64_t answered) {
  if (answered > push->clock) {
    absl::MutexLock lock(&mu_);
    const bool is_single = puller_.connection->servers() == 1;
    if (is_single) push->clock = answered;
    next_ = std::max(next_, answered + (is_single ? 1 : 0));
  }
  push->next = std::max(push->next, std::min(answered, push->clock));
  if (push->next >= push->clock) return Send(push, push->clock);
  if (push->next > clock) return Proceed(push);
  Send(push, clock);
}

absl::StatusOr<grpc::ByteBuffer> PushQueue::Encode(const Pending& push,
                                                   uint64_t clock) const {
  tensor::Message<v1::PushHeader> message;
  *message.header.mutable_view() = puller_.connection->view();
  *message.header.mutable_worker() = *puller_.worker;
  message.header.set_clock(clock);
  if (clock == push.clock) message.bundle = push.gradients;
  return tensor::Encode(message);
}

void PushQueue::Send(Pending* push, uint64_t clock) {
  if (push->step.has_value() && clock == push->clock) {
    absl::MutexLock lock(&mu_);
    sent_ = {*push->step, clock};
  }
  auto bytes = Encode(*push, clock);
  if (!bytes.ok()) return Fail(*push, bytes.status());
  PatientCall::Start(
      puller_.loop,
      {puller_.connection->channels()[server_],
       absl::StrCat(kServicePath, "Push"), *std::move(bytes), push->deadline,
       nullptr, puller_.connection->route(server_)},
      puller_.rejoin(server_),
      [this, push, clock](const CallLoop::Reply& reply, int attempts) {
        absl::StatusOr<PushVerdict> verdict = Read(reply, attempts);
        if (!verdict.ok()) verdict = Explain(*push, verdict.status());
        OnSent(push, clock, std::move(verdict));
      },
      {[this, push] { return Named(*push); }});
}

void PushQueue::OnSent(Pending* push, uint64_t clock,
                       absl::StatusOr<PushVerdict> verdict) {
  if (verdict.ok()) {
    absl::MutexLock lock(&mu_);
    ended_ = std::max(ended_, clock + 1);
    is_behind_ |= *verdict == PushVerdict::kLate;
  }
  if (!verdict.ok() || clock == push->clock) return End(std::move(verdict));
  push->next = clock + 1;
  Proceed(push);
}

// Returns a server's verdict on a push. If the answer to an earlier attempt was
// lost, kDuplicate means that the earlier attempt was counted.
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

// Ends the push with `error`. Posts this to the loop, because Fail() runs on
// any thread, and the callback must not run within Push().
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

// Resets the clock. Otherwise a pull for the step would request the next step,
// and wait for this worker itself.
void PushQueue::ForgetLocked(const Pending& push) {
  next_ = handed_over_ = push.clock;
  sent_.reset();
}

std::string PushQueue::Named(const Pending& push) const {
  return absl::StrCat("push of step ", push.step.value_or(push.clock), ": ",
                      puller_.connection->NameOf(server_));
}

absl::Status PushQueue::Explain(const Pending& push,
                                const absl::Status& error) const {
  return puller_.connection->Explain(
      absl::StrCat("push of step ", push.step.value_or(push.clock)), server_,
      error);
}

}  // namespace penstock::ps
