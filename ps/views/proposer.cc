#include "ps/views/proposer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/membership/agreements.h"
#include "ps/membership/keys.h"
#include "ps/membership/registration.h"

namespace penstock::ps::views {

Proposer::Proposer(membership::Membership* member, std::function<void()> done)
    : member_(member),
      done_(std::move(done)),
      thread_([this] { ThreadLoop(); }) {}

Proposer::~Proposer() {
  {
    absl::MutexLock lock(&mu_);
    stop_ = true;
  }
  thread_.join();
}

bool Proposer::is_busy() const {
  absl::MutexLock lock(&mu_);
  return proposal_.has_value();
}

void Proposer::Propose(membership::v1::View view, int64_t marks) {
  absl::MutexLock lock(&mu_);
  proposal_ = Proposal{std::move(view), marks};
}

absl::Status Proposer::TakeError() {
  absl::MutexLock lock(&mu_);
  return std::exchange(error_, absl::OkStatus());
}

void Proposer::ThreadLoop() {
  const auto is_due = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return stop_ || proposal_.has_value();
  };
  while (true) {
    Proposal next;
    {
      absl::MutexLock lock(&mu_);
      mu_.Await(absl::Condition(&is_due));
      if (stop_) return;
      next = *proposal_;
    }
    membership::Registry::Guard guard = member_->registration()->guard();
    guard.unwritten = membership::kLeaving;
    guard.seen = next.marks;
    const absl::Status status =
        membership::AdvanceView(member_->registry(), next.view, guard);
    {
      absl::MutexLock lock(&mu_);
      proposal_ = absl::nullopt;
      // Reports no error if another process has written a view first, or if
      // etcd is unreachable: the keeper decides again.
      if (!status.ok() && !absl::IsAborted(status) &&
          !absl::IsUnavailable(status)) {
        error_ = absl::Status(
            status.code(), absl::StrCat("view ", next.view.number(),
                                        " was not taken: ", status.message()));
      }
    }
    done_();
  }
}

}  // namespace penstock::ps::views
