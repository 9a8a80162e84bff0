#include "transport/grpc/polling/left_input.h"

#include <atomic>

#include "absl/time/time.h"
#include "src/core/lib/iomgr/executor.h"
#include "transport/base/steady_time.h"
#include "transport/grpc/internal/grpc_abi.h"
#include "transport/progress/poll_set.h"
#include "transport/progress/turns.h"

namespace penstock {
namespace core {
namespace {

// True while the closure of PollOnExecutor() waits for a thread.
std::atomic<bool> g_scheduled{false};

// Polls all paths until none has input, but at most for one turn. Returns true
// if input may be left.
bool PollForATurn() {
  progress::PollSet* set = progress::PollSet::Get();
  const absl::Time end =
      base::SteadyNow() + absl::Nanoseconds(progress::Turns::kTurnNanos);
  while (set->PollAll()) {
    if (base::SteadyNow() >= end) return true;
  }
  return false;
}

void PollOnExecutor() {
  if (g_scheduled.exchange(true)) return;
  grpc_core::Executor::Run(grpc_core::NewClosure([](const grpc_error_handle&) {
                             g_scheduled.store(false);
                             if (LeftInputOfProcess()->Take()) PollLeftInput();
                           }),
                           absl::OkStatus());
}

}  // namespace

progress::LeftInput* LeftInputOfProcess() {
  static auto* const left = new progress::LeftInput;
  return left;
}

void PollLeftInput() {
  if (PollForATurn() && LeftInputOfProcess()->Leave()) PollOnExecutor();
}

void LeaveInput() {
  progress::LeftInput* left = LeftInputOfProcess();
  if (left->Leave() && left->Take()) PollLeftInput();
}

}  // namespace core
}  // namespace penstock
