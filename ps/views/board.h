// The newest view that a process knows, for all its threads.

#ifndef PENSTOCK_PS_VIEWS_BOARD_H_
#define PENSTOCK_PS_VIEWS_BOARD_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/optional.h"
#include "ps/replication/view.h"

namespace penstock::ps::views {

struct Known {
  absl::optional<replication::View> view;
  // The addresses of all servers, in the order of the shards; empty before the
  // first view. Some of the servers may no longer run.
  std::vector<std::string> servers;
  // The shards without a live primary or backup. Only a checkpoint can restore
  // them.
  std::vector<size_t> lost;
  // Why this process does not follow etcd now, with the remedy; empty if it
  // does.
  std::string etcd_failure;
};

// Thread-safe.
class Board {
 public:
  void Set(Known known) ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    known_ = std::move(known);
  }
  Known Get() const ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return known_;
  }

 private:
  mutable absl::Mutex mu_;
  Known known_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::ps::views

#endif  // PENSTOCK_PS_VIEWS_BOARD_H_
