#include "transport/grpc/grpc_executor.h"

#include <utility>

#include "src/core/lib/iomgr/closure.h"
#include "src/core/lib/iomgr/exec_ctx.h"
#include "src/core/lib/iomgr/timer.h"
#include "transport/grpc/internal/grpc_abi.h"

namespace penstock {
namespace core {
namespace {

struct Delayed {
  std::function<void(bool is_due)> task;
  grpc_timer timer;
  grpc_closure closure;
};

class Executor final : public connection::Executor {
 public:
  absl::Time Now() const override { return core::Now(); }
  void Post(std::function<void()> task) override {
    grpc_core::ExecCtx::Run(
        DEBUG_LOCATION,
        grpc_core::NewClosure(
            [task = std::move(task)](grpc_error_handle) { task(); }),
        absl::OkStatus());
  }
  // Runs `task` after `delay`. Adds one millisecond, because gRPC's clock
  // counts whole milliseconds.
  Id RunAfter(absl::Duration delay,
              std::function<void(bool is_due)> task) override {
    auto* const delayed = new Delayed{std::move(task), {}, {}};
    GRPC_CLOSURE_INIT(
        &delayed->closure,
        [](void* arg, grpc_error_handle error) {
          auto* const ended = static_cast<Delayed*>(arg);
          ended->task(error.ok());
          delete ended;
        },
        delayed, nullptr);
    grpc_timer_init(&delayed->timer,
                    grpc_core::ExecCtx::Get()->Now() +
                        grpc_core::Duration::Milliseconds(
                            absl::ToInt64Milliseconds(delay)) +
                        grpc_core::Duration::Milliseconds(1),
                    &delayed->closure);
    return reinterpret_cast<uintptr_t>(delayed);
  }
  void Cancel(Id id) override {
    auto* const delayed =
        reinterpret_cast<Delayed*>(static_cast<uintptr_t>(id));
    grpc_timer_cancel(&delayed->timer);
  }
};

}  // namespace

absl::Time Now() {
  return absl::UnixEpoch() +
         absl::Milliseconds(grpc_core::ExecCtx::Get()
                                ->Now()
                                .milliseconds_after_process_epoch());
}

std::shared_ptr<connection::Executor> GrpcExecutor() {
  static const auto* const executor =
      new std::shared_ptr<connection::Executor>(std::make_shared<Executor>());
  return *executor;
}

}  // namespace core
}  // namespace penstock
