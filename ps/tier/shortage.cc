#include "ps/tier/shortage.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "transport/base/steady_time.h"

namespace penstock::ps {
namespace {

// The smallest growth of the free space that counts, in bytes. Smaller changes
// are noise.
constexpr uint64_t kLeastGain = uint64_t{1} << 20;

absl::Status StatusOf(int error) {
  const bool is_full = error == ENOSPC || error == EDQUOT;
  return absl::ResourceExhaustedError(absl::StrCat(
      is_full ? "the disk is full (" : "the disk fails (",
      std::error_code(error, std::generic_category()).message(), ")"));
}

}  // namespace

absl::Status Shortage::status() const {
  if (!maybe_.load(std::memory_order_relaxed)) return absl::OkStatus();
  base::MutexLock lock(&mu_);
  const int cause = CauseLocked();
  return cause == 0 ? absl::OkStatus() : StatusOf(cause);
}

int Shortage::CauseLocked() const {
  if (waiting_ > 0) return waiting_error_;
  for (const Failure& failure : failures_) {
    if (failure.error != 0 && base::SteadyNow() - failure.at < pace_.memory) {
      return failure.error;
    }
  }
  return 0;
}

void Shortage::UpdateLocked() { maybe_ = CauseLocked() != 0; }

bool Shortage::Pause(absl::Duration time) {
  const auto end =
      std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(time);
  base::MutexLock lock(&mu_);
  while (!closed_ && closing_.wait_until(mu_, end) != std::cv_status::timeout) {
  }
  return !closed_;
}

Shortage::Waiting::~Waiting() {
  if (!counted_) return;
  base::MutexLock lock(&shortage_->mu_);
  --shortage_->waiting_;
  shortage_->UpdateLocked();
}

bool Shortage::Waiting::UntilRetry(int error) {
  {
    base::MutexLock lock(&shortage_->mu_);
    if (!counted_) ++shortage_->waiting_;
    counted_ = true;
    shortage_->waiting_error_ = error;
    shortage_->UpdateLocked();
  }
  return shortage_->Pause(shortage_->pace_.retry);
}

void Shortage::OnFailed(Kind kind, int error, uint64_t bytes) {
  base::MutexLock lock(&mu_);
  Failure& failure = FailureOf(kind);
  failure.backoff = failure.error == 0
                        ? pace_.first_backoff
                        : std::min(2 * failure.backoff, pace_.longest_backoff);
  failure.error = error;
  failure.bytes = bytes;
  failure.at = base::SteadyNow();
  UpdateLocked();
}

void Shortage::OnDone(Kind kind) {
  if (!maybe_) return;
  base::MutexLock lock(&mu_);
  FailureOf(kind) = Failure();
  UpdateLocked();
}

void Shortage::AwaitCompaction() {
  if (!maybe_) return;
  Failure failure;
  {
    base::MutexLock lock(&mu_);
    failure = FailureOf(Kind::kCompaction);
  }
  if (failure.error == 0) return;
  const uint64_t free_before = free_bytes_();
  const uint64_t gain = std::max(failure.bytes, kLeastGain);
  while (base::SteadyNow() < failure.at + failure.backoff &&
         Pause(pace_.retry)) {
    const uint64_t free = free_bytes_();
    if (free > free_before && free - free_before >= gain) return;
  }
}

void Shortage::Close() {
  base::MutexLock lock(&mu_);
  closed_ = true;
  closing_.notify_all();
}

}  // namespace penstock::ps
