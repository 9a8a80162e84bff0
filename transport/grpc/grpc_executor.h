// Runs the tasks of connections in gRPC's ExecCtx and timers.

#ifndef PENSTOCK_TRANSPORT_GRPC_GRPC_EXECUTOR_H_
#define PENSTOCK_TRANSPORT_GRPC_GRPC_EXECUTOR_H_

#include <memory>

#include "absl/time/time.h"
#include "transport/connection/executor.h"

namespace penstock {
namespace core {

// Returns the time of gRPC's clock. Call in an ExecCtx.
absl::Time Now();

// Returns the process's executor. Call its functions in an ExecCtx. Post() runs
// a task when the thread's ExecCtx is flushed. RunAfter() always runs its task,
// with `is_due` false after Cancel().
std::shared_ptr<connection::Executor> GrpcExecutor();

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_GRPC_EXECUTOR_H_
