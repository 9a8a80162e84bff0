#include "transport/fabric/awaited_tokens.h"

#include <utility>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "transport/progress/fork_count.h"

namespace penstock {
namespace fabric {

std::shared_ptr<AwaitedTokens> AwaitedTokens::Create(progress::EventLoop* loop,
                                                     absl::Duration limit,
                                                     std::string late) {
  return std::shared_ptr<AwaitedTokens>(
      new AwaitedTokens(loop, limit, std::move(late)));
}

AwaitedTokens::AwaitedTokens(progress::EventLoop* loop, absl::Duration limit,
                             std::string late)
    : loop_(loop),
      limit_(limit),
      late_(std::move(late)),
      fork_count_(progress::ForkCount()) {}

std::unique_ptr<PendingConnect> AwaitedTokens::Await(
    const std::string& name, std::shared_ptr<Attempt> attempt) {
  if (!Keep(name, attempt)) {
    return FailLater(
        std::move(attempt),
        absl::AlreadyExistsError("another attempt waits for this token"));
  }
  std::weak_ptr<AwaitedTokens> weak = shared_from_this();
  std::weak_ptr<Attempt> weak_attempt = attempt;
  const progress::EventLoop::Id timer =
      loop_->RunAfter(limit_, [weak, name, weak_attempt, late = late_] {
        std::shared_ptr<Attempt> overdue = weak_attempt.lock();
        if (overdue == nullptr) return;
        if (auto self = weak.lock()) self->Forget(name, overdue.get());
        overdue->Finish(absl::DeadlineExceededError(late));
      });
  // The handle's own reference keeps the attempt alive.
  const Attempt* const cancelled = attempt.get();
  return absl::make_unique<AttemptHandle>(
      std::move(attempt), [weak, name, cancelled, loop = loop_, timer] {
        loop->Cancel(timer);
        if (auto self = weak.lock()) self->Forget(name, cancelled);
      });
}

bool AwaitedTokens::Keep(const std::string& name,
                         std::shared_ptr<Attempt> attempt) {
  base::MutexLock lock(&mu_);
  std::shared_ptr<Attempt>& place = waiting_[name];
  // Accepts the name if its previous attempt was cancelled but not removed yet.
  if (place != nullptr && place->pending()) return false;
  place = std::move(attempt);
  return true;
}

void AwaitedTokens::Forget(const std::string& name, const Attempt* attempt) {
  // Does nothing in a forked child, where a thread of the parent may have held
  // the lock.
  if (fork_count_ != progress::ForkCount()) return;
  std::shared_ptr<Attempt> forgotten;  // destroyed after the lock is released,
                                       // with its callback
  base::MutexLock lock(&mu_);
  auto it = waiting_.find(name);
  if (it == waiting_.end() || it->second.get() != attempt) return;
  forgotten = std::move(it->second);
  waiting_.erase(it);
}

std::shared_ptr<Attempt> AwaitedTokens::Take(const std::string& name,
                                             const Proof& proof) {
  base::MutexLock lock(&mu_);
  auto it = waiting_.find(name);
  if (it == waiting_.end() || !it->second->pending()) return nullptr;
  // Leaves the attempt in the list if the proof fails, because a peer that
  // knows only the name must not use up the token.
  if (proof && !proof(*it->second)) return nullptr;
  std::shared_ptr<Attempt> attempt = std::move(it->second);
  waiting_.erase(it);
  return attempt;
}

}  // namespace fabric
}  // namespace penstock
