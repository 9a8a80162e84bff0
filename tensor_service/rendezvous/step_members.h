// Remembers which clients take part in which steps of a rendezvous.

#ifndef PENSTOCK_TENSOR_SERVICE_RENDEZVOUS_STEP_MEMBERS_H_
#define PENSTOCK_TENSOR_SERVICE_RENDEZVOUS_STEP_MEMBERS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <string>
#include <unordered_map>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace penstock::tensor {

// Remembers the members of steps, within fixed bounds. A member is identified
// by its name. The table also records the caller, such as a connection, that
// named the member. A caller cannot make the table forget members that other
// callers named. Thread-safe.
class StepMembers {
 public:
  // Caps the remembered steps of a member. No member works on more steps at a
  // time.
  static constexpr size_t kMaxSteps = 64;
  // Caps the remembered members of a caller. Several programs may share one
  // caller: a connection or a certificate.
  static constexpr size_t kMaxMembersEach = 16;
  // Caps the remembered callers, above the size of a cluster. With the caps
  // above, the table takes at most about 64 MiB.
  static constexpr size_t kMaxCallers = 4096;

  // Records that `member`, through `caller`, takes part in `step`.
  void Join(const std::string& caller, const std::string& member,
            uint64_t step);

  // Returns true if a Join() of `member` and `step` is remembered.
  bool Has(const std::string& member, uint64_t step) const;

 private:
  struct Caller {
    std::string name;
    std::deque<std::string> members;  // the oldest first
  };
  using Callers = std::list<Caller>;
  struct Member {
    Callers::iterator caller;
    std::deque<uint64_t> steps;  // the oldest first
  };

  Callers::iterator CallerLocked(const std::string& name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Member* MemberLocked(const std::string& caller, const std::string& name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable absl::Mutex mu_;
  Callers callers_ ABSL_GUARDED_BY(mu_);  // the latest first
  std::unordered_map<std::string, Callers::iterator> by_name_
      ABSL_GUARDED_BY(mu_);
  std::unordered_map<std::string, Member> members_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_RENDEZVOUS_STEP_MEMBERS_H_
