// Writes views to etcd on a thread of its own, while the keeper goes on.

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

// Proposes one view at a time, on a thread of its own. The process can thus
// follow new views while it waits for etcd's answer. This matters for a former
// primary: until it has seen a view, its successor waits for the end of the
// lease.
//
// Thread-safe.
class Proposer {
 public:
  // Proposes views with the registration of `member`, which must outlive this
  // object. Calls `done` on the thread after each proposal.
  Proposer(membership::Membership* member, std::function<void()> done);
  // May block while etcd takes a proposal, for seconds at most.
  ~Proposer();
  Proposer(const Proposer&) = delete;
  Proposer& operator=(const Proposer&) = delete;

  bool is_busy() const ABSL_LOCKS_EXCLUDED(mu_);
  // Begins a proposal, which fails if a server was marked as leaving after the
  // revision `marks`. A command that drains a server thus knows that no view
  // comes which ignores its mark. Requires !is_busy().
  void Propose(membership::v1::View view, int64_t marks)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the error of a proposal once; otherwise OK.
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
