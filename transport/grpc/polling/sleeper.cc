#include "transport/grpc/polling/sleeper.h"

#include <pthread.h>

#include <atomic>

#include "src/core/lib/iomgr/exec_ctx.h"

namespace penstock {
namespace core {
namespace {

std::atomic<int> g_sleepers{0};

// Resets the count in the child of a fork, which does not have its parent's
// sleeping threads.
void ForgetInChild() { g_sleepers.store(0, std::memory_order_relaxed); }

// Registers before main(), for the reason in base::PerProcess.
const int registered = pthread_atfork(nullptr, nullptr, &ForgetInChild);

}  // namespace

Sleeper::Sleeper() {
  GRPC_CLOSURE_INIT(&on_wake_up_, &Sleeper::OnWakeUp, this, nullptr);
  g_sleepers.fetch_add(1, std::memory_order_relaxed);
  grpc_core::ExecCtx::Run(DEBUG_LOCATION, &on_wake_up_, absl::OkStatus());
}

bool Sleeper::Any() { return g_sleepers.load(std::memory_order_relaxed) > 0; }

void Sleeper::OnWakeUp(void* self, grpc_error_handle) {
  static_cast<Sleeper*>(self)->is_scheduled_ = false;
  g_sleepers.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace core
}  // namespace penstock
