// Writes views to etcd on a separate thread.

#ifndef PENSTOCK_PS_VIEWS_PROPOSER_H_
#define PENSTOCK_PS_VIEWS_PROPOSER_H_

#include <cstdint>
#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/optional.h"
#include "ps/membership/membership.h"
#include "ps/membership/membership.pb.h"

namespace penstock::ps::views {

// Proposes one view at a time, on a separate thread. The process can thus
// follow new views while a proposal waits for etcd. This matters for a former
// primary: its successor waits for the end of the lease until the former
// primary has seen the view.
//
// Thread-safe.
class Proposer {
 public:
  // Proposes views with the registration of `member`, which must outlive this
  // object. Calls `done` on the thread after each proposal.
  Proposer(membership::Membership* member, std::function<void()> done);
  // May block for some seconds, while a proposal waits for etcd.
  ~Proposer();
  Proposer(const Proposer&) = delete;
  Proposer& operator=(const Proposer&) = delete;

  bool is_busy() const ABSL_LOCKS_EXCLUDED(mu_);
  // Begins a proposal. The proposal fails if a server was marked as leaving
  // after the revision `marks`. A command that drains a server thus knows that
  // no later view ignores its mark. Requires !is_busy().
  void Propose(membership::v1::View view, int64_t marks)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the error of a failed proposal, once. Otherwise returns OK.
  absl::Status TakeError() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Proposal {
    membership::v1::View view;
    int64_t marks = 0;
  };

  void ThreadLoop();

  membership::Membership* const member_;
  const std::function<void()> done_;
  mutable absl::Mutex mu_;
  absl::optional<Proposal> proposal_ ABSL_GUARDED_BY(mu_);
  absl::Status error_ ABSL_GUARDED_BY(mu_);
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;  // starts last
};

}  // namespace penstock::ps::views

#endif  // PENSTOCK_PS_VIEWS_PROPOSER_H_
