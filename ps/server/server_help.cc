// Small steps, which the threads of callers apply.

#include "ps/server/server.h"

namespace penstock::ps {
namespace {

// Of values, and of gradients. Steps of any optimizer take less than a
// millisecond of one core then; the threads that help are those that calls come
// in on. Larger ones use all cores, and last longer than a thread takes to
// wake.
constexpr size_t kSmallStepBytes = size_t{512} << 10;

}  // namespace

// Rows take a time that is harder to foresee: tables grow, evict and spill.
bool Server::HasSmallSteps(const Tables& tables) {
  size_t bytes = 0;
  for (const Part& part : tables.parts()) {
    auto size = tensor::ByteSize(part.dtype, part.shape);
    if (!size.ok() || *size > kSmallStepBytes) return false;
    bytes += *size;
  }
  return tables.model().rows().empty() && bytes <= kSmallStepBytes;
}

// A snapshot may be of the values between two certain steps, and only the
// thread takes those.
bool Server::CanBeHelpedLocked() const {
  return has_small_steps_ && pending_snapshots_.empty() &&
         held_.bytes() <= kSmallStepBytes;
}

bool Server::BeginHelp() {
  absl::MutexLock lock(&mu_);
  if (applies_.empty()) return false;
  if (!is_applying_ && CanBeHelpedLocked()) {
    is_applying_ = true;
    return true;
  }
  help_ends_ = absl::InfinitePast();
  WakeThreadLocked();
  return false;
}

void Server::EndHelp() {
  absl::MutexLock lock(&mu_);
  is_applying_ = false;
  if (!applies_.empty()) help_ends_ = absl::InfinitePast();
  // Also for a snapshot, which may have become due meanwhile.
  if (HasWorkLocked(base::SteadyNow())) return wake_thread_.Signal();
  WakeThreadLocked();
}

void Server::Help() {
  if (!BeginHelp()) return;
  ApplyNext(NoMemory::kLeaveToThread);
  EndHelp();
}

}  // namespace penstock::ps
