// Remembers the process that has made an object.

#ifndef PENSTOCK_PYTHON_MAKER_H_
#define PENSTOCK_PYTHON_MAKER_H_

#include <unistd.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "transport/progress/fork_count.h"

namespace penstock::python {

// A member of objects with threads, connections or locks. A forked child has a
// copy of such an object, but not its threads. In the child, the object must
// refuse all calls, and must leak its members instead of destroying them.
class Maker {
 public:
  // Returns true in a forked child of the process that made this object.
  bool IsParent() const { return fork_count_ != progress::ForkCount(); }

  // Returns FAILED_PRECONDITION, with the remedy, for a call in such a child.
  // `name` names the object in the message.
  absl::Status Refuse(const std::string& name) const {
    return absl::FailedPreconditionError(absl::StrCat(
        name, ": process ", process_, " has made it, and this one was forked ",
        "from that: make another one, in a process that was spawned"));
  }

 private:
  const uint32_t fork_count_ = progress::ForkCount();
  const pid_t process_ = getpid();
};

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_MAKER_H_
