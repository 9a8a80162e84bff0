// Runs a task before the current thread waits in gRPC.

#ifndef PENSTOCK_TRANSPORT_GRPC_POLLING_BEFORE_WAIT_H_
#define PENSTOCK_TRANSPORT_GRPC_POLLING_BEFORE_WAIT_H_

#include <memory>

namespace penstock {
namespace core {

// Work that a thread has put off. Does not run if the thread never waits in
// gRPC, so another thread must do the work in the end.
class BeforeWait {
 public:
  virtual ~BeforeWait() = default;
  // Does the work. Called in an ExecCtx, without locks.
  virtual void OnWait() = 0;

  // Calls `work->OnWait()` when the current thread next waits in gRPC, unless
  // `work` has been destroyed by then. Replaces the thread's previous work.
  static void Set(const std::shared_ptr<BeforeWait>& work);
  // Returns true if the current thread has put off work.
  static bool IsSet();
  // Does the work of the current thread, if any.
  static void Run();
};

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_POLLING_BEFORE_WAIT_H_
