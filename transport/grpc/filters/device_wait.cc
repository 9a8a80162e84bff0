#include "transport/grpc/filters/device_wait.h"

#include <utility>

#include "absl/status/status.h"
#include "grpc/grpc.h"
#include "src/core/lib/iomgr/exec_ctx.h"
#include "src/core/lib/iomgr/executor.h"
#include "transport/grpc/filters/device_slices.h"
#include "transport/grpc/internal/errors.h"
#include "transport/memory/device_ranges.h"
#include "transport/progress/ask_until_done.h"

namespace penstock {
namespace core {

std::shared_ptr<DeviceWait> DeviceWait::Start(
    const grpc_core::SliceBuffer& message, grpc_closure* then) {
  auto wait = std::make_shared<DeviceWait>(then);
  wait->slices_ = DeviceSlicesOf(message);
  const absl::Status asks =
      progress::AskUntilDone([wait] { return wait->Ask(); });
  return asks.ok() ? wait : nullptr;
}

DeviceWait::DeviceWait(grpc_closure* then) : then_(then) { grpc_init(); }

DeviceWait::~DeviceWait() { grpc_shutdown(); }

bool DeviceWait::Ask() {
  if (is_abandoned_.load(std::memory_order_relaxed)) {
    Finish(absl::CancelledError("the call has ended"));
    return true;
  }
  while (!slices_.empty()) {
    const absl::optional<absl::Status> ready =
        memory::PollDevice(slices_.back());
    if (!ready.has_value()) return false;
    if (!ready->ok()) {
      Finish(ToError(*ready));
      return true;
    }
    slices_.pop_back();
  }
  Finish(absl::OkStatus());
  return true;
}

// Ends the wait by running `then_` on gRPC's executor. Running `then_` here
// would delay other waits, because `then_` may copy.
void DeviceWait::Finish(const grpc_error_handle& error) {
  grpc_core::ExecCtx exec_ctx;
  grpc_core::Executor::Run(then_, error, grpc_core::ExecutorType::DEFAULT,
                           grpc_core::ExecutorJobType::LONG);
}

}  // namespace core
}  // namespace penstock
