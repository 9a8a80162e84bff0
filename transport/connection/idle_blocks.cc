#include "transport/connection/idle_blocks.h"

#include "absl/time/time.h"
#include "transport/memory/large_blocks.h"
#include "transport/progress/aside.h"
#include "transport/progress/event_loop.h"

namespace penstock {
namespace connection {
namespace {

// The time until FreeIdle() runs. Longer than the pauses of a program that
// sends messages continually.
constexpr absl::Duration kIdleTime = absl::Seconds(5);

// Calls FreeIdle() after kIdleTime. Returns false if the timer's thread cannot
// be started.
bool LookLater() {
  absl::StatusOr<progress::EventLoop*> loop = progress::EventLoop::Get();
  if (!loop.ok()) return false;
  return (*loop)->RunAfter(kIdleTime, [] {
    // Frees the pages on another thread, because this takes long.
    progress::RunAside(progress::Aside::kMemory,
                       [] { memory::LargeBlocks::Get()->FreeIdle(); });
  }) != 0;
}

}  // namespace

void FreeIdleBlocks() {
  static const bool set = [] {
    memory::LargeBlocks::Get()->SetTimer(LookLater);
    return true;
  }();
  (void)set;
}

}  // namespace connection
}  // namespace penstock
