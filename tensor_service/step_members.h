// Who takes part in which steps of a rendezvous.

#ifndef PENSTOCK_TENSOR_SERVICE_STEP_MEMBERS_H_
#define PENSTOCK_TENSOR_SERVICE_STEP_MEMBERS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <string>
#include <unordered_map>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace penstock::tensor {

// Remembers the members of steps, within fixed bounds. A member is known by a
// name and comes by a caller: one caller cannot make the table forget the
// members of others. Thread-safe.
class StepMembers {
 public:
  // The last steps of each member. More than anybody works on at a time.
  static constexpr size_t kMaxSteps = 64;
  // The last members that came by one caller: programs behind one connection or
  // certificate.
  static constexpr size_t kMaxMembersEach = 16;
  // The callers that came last. More than a cluster has. With the bounds above,
  // the table takes at most some 64 MiB.
  static constexpr size_t kMaxCallers = 4096;

  // Notes that `member`, who comes by `caller`, takes part in `step`.
  void Join(const std::string& caller, const std::string& member,
            uint64_t step);

  // Returns whether that is noted.
  bool Has(const std::string& member, uint64_t step) const;

 private:
  struct Caller {
    std::string name;
    std::deque<std::string> members;  // the oldest is at the front
  };
  using Callers = std::list<Caller>;
  struct Member {
    Callers::iterator caller;
    std::deque<uint64_t> steps;  // the oldest is at the front
  };

  Callers::iterator CallerLocked(const std::string& name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Member* MemberLocked(const std::string& caller, const std::string& name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable absl::Mutex mu_;
  Callers callers_ ABSL_GUARDED_BY(mu_);  // who came last is at the front
  std::unordered_map<std::string, Callers::iterator> by_name_
      ABSL_GUARDED_BY(mu_);
  std::unordered_map<std::string, Member> members_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_STEP_MEMBERS_H_
