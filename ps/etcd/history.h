// Recognizes an etcd that was wiped, restored or replaced.

#ifndef PENSTOCK_PS_ETCD_HISTORY_H_
#define PENSTOCK_PS_ETCD_HISTORY_H_

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "third_party/etcd/rpc.pb.h"

namespace penstock::ps::etcd {

// The cluster id and the highest revision of all answers. An etcd that was
// wiped or restored from a backup answers with another cluster id, or with an
// older revision. An endpoint of another etcd answers with another cluster id.
//
// The first answer decides which cluster is the right one. Thread-safe.
class History {
 public:
  // Returns the lowest revision that the answer to a call may have, if the call
  // begins now and is linearizable.
  int64_t floor() const ABSL_LOCKS_EXCLUDED(mu_);

  // Checks the header of an answer, and remembers its revision if the check
  // succeeds. Returns DATA_LOSS, with the remedy, if the cluster is a different
  // one, or if the revision is below `floor`. If a member answers without
  // asking the others, pass 0 as `floor`, because that member may be behind.
  absl::Status Check(const etcdserverpb::ResponseHeader& header, int64_t floor)
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  mutable absl::Mutex mu_;
  uint64_t cluster_ ABSL_GUARDED_BY(mu_) = 0;  // 0: no answer yet
  int64_t revision_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace penstock::ps::etcd

#endif  // PENSTOCK_PS_ETCD_HISTORY_H_
