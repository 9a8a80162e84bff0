// Ends the calls of a thread from another thread.

#ifndef PENSTOCK_PS_ETCD_CANCEL_H_
#define PENSTOCK_PS_ETCD_CANCEL_H_

#include <set>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "grpcpp/client_context.h"
#include "transport/base/steady_time.h"

namespace penstock::ps::etcd {

// A switch that ends a thread's calls and waits. Cannot be reset. Thread-safe.
class Cancel {
 public:
  Cancel() = default;
  Cancel(const Cancel&) = delete;
  Cancel& operator=(const Cancel&) = delete;

  // Cancels the running calls and waits, and all later ones.
  void Now() ABSL_LOCKS_EXCLUDED(mu_);
  bool is_cancelled() const ABSL_LOCKS_EXCLUDED(mu_);
  // Blocks until `time`, by base::SteadyNow(). Returns false as soon as Now()
  // is called.
  bool WaitUntil(absl::Time time) ABSL_LOCKS_EXCLUDED(mu_);

  // Lets Now() cancel a call, for the scope's lifetime. Does nothing if
  // `cancel` is null. Create the scope before the call begins.
  class Scope {
   public:
    Scope(Cancel* cancel, grpc::ClientContext* call);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Cancel* const cancel_;
    grpc::ClientContext* const call_;
  };

 private:
  mutable absl::Mutex mu_;
  base::SteadyCondVar changed_;
  bool is_cancelled_ ABSL_GUARDED_BY(mu_) = false;
  std::set<grpc::ClientContext*> calls_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::ps::etcd

#endif  // PENSTOCK_PS_ETCD_CANCEL_H_
