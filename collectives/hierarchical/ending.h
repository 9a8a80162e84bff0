// Ends the groups within a hierarchical group.

#ifndef PENSTOCK_COLLECTIVES_HIERARCHICAL_ENDING_H_
#define PENSTOCK_COLLECTIVES_HIERARCHICAL_ENDING_H_

#include <vector>

#include "collectives/hierarchical/group.h"
#include "transport/base/mutex.h"

namespace penstock::collectives {

// The inner groups, for aborting them. Thread-safe.
class HierarchicalGroup::Ending {
 public:
  // `group` must live until Forget().
  void Add(Group* group) {
    base::MutexLock lock(&mu_);
    groups_.push_back(group);
  }
  void Forget() {
    base::MutexLock lock(&mu_);
    groups_.clear();
  }
  // Ends the pending operations of all groups. Does not block: Abort() only
  // sends messages.
  void AbortAll() {
    base::MutexLock lock(&mu_);
    for (Group* const group : groups_) group->Abort();
  }

 private:
  base::Mutex mu_;
  std::vector<Group*> groups_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::collectives

#endif  // PENSTOCK_COLLECTIVES_HIERARCHICAL_ENDING_H_
