#include "transport/rpc/poll_wait.h"

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "transport/base/steady_time.h"
#include "transport/progress/event_loop.h"
#include "transport/progress/poll_set.h"
#include "transport/progress/spinner.h"

namespace penstock {
namespace rpc {
namespace {

// Returns the thread's spinner. Makes a new one in a forked child, which has
// another PollSet.
progress::Spinner* SpinnerOfThread(progress::PollingMode mode) {
  thread_local progress::PollSet* set = nullptr;
  thread_local absl::optional<progress::Spinner> spinner;
  if (set != progress::PollSet::Get()) {
    set = progress::PollSet::Get();
    spinner.emplace(set, mode);
  }
  return &*spinner;
}

// Polls on the loop's thread until the paths have no input.
void PollOnLoop(progress::PollingMode mode) {
  const absl::StatusOr<progress::EventLoop*> loop =
      progress::EventLoop::GetPolling(mode);
  // Returns without a loop, because then there are no connections.
  if (!loop.ok()) return;
  (*loop)->Post([mode] {
    if (progress::PollSet::Get()->PollAll()) PollOnLoop(mode);
  });
}

}  // namespace

bool PollUntil(progress::PollingMode mode, absl::Time deadline,
               const std::function<bool()>& is_done,
               const std::function<bool()>& sleep) {
  if (is_done()) return true;
  progress::Spinner* const spinner = SpinnerOfThread(mode);
  bool done = false;
  while (!done && base::SteadyNow() < deadline) {
    spinner->Wait(/*watches=*/true, is_done, sleep);
    done = is_done();
  }
  if (spinner->TakeLeftInput()) PollOnLoop(mode);
  return done;
}

}  // namespace rpc
}  // namespace penstock
