#include "transport/grpc/timer.h"

#include <utility>

#include "src/core/lib/iomgr/exec_ctx.h"

namespace penstock {
namespace core {

absl::Time Now() {
  return absl::UnixEpoch() +
         absl::Milliseconds(grpc_core::ExecCtx::Get()
                                ->Now()
                                .milliseconds_after_process_epoch());
}

void Timer::Start(grpc_core::Duration delay, Callback callback) {
  pending_ = true;
  callback_ = std::move(callback);
  GRPC_CLOSURE_INIT(
      &closure_,
      [](void* self, grpc_error_handle error) {
        // Call a copy, because the callback may Start() the timer again.
        const Callback callback = static_cast<Timer*>(self)->callback_;
        callback(error.ok());
      },
      this, nullptr);
  grpc_timer_init(&timer_, grpc_core::ExecCtx::Get()->Now() + delay, &closure_);
}

void Timer::Cancel() {
  if (pending_) grpc_timer_cancel(&timer_);
}

}  // namespace core
}  // namespace penstock
