// The reasons why a group ends.

#ifndef PENSTOCK_COLLECTIVES_FAULT_H_
#define PENSTOCK_COLLECTIVES_FAULT_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace penstock::collectives {

// The reason why a group ends. The numbers are sent to other processes.
enum class Fault : uint8_t {
  kNone = 0,
  kDied = 1,      // the process has ended
  kSilent = 2,    // the process does not run, because it was stopped
  kLeft = 3,      // closed the group
  kMismatch = 4,  // called another operation
  kLate = 5,      // did not call an operation within the timeout
  kAborted = 6,   // called Abort()
  kFailed = 7,    // any other reason
};

// Returns a text such as "has died". Accepts any number, because a peer wrote
// the number.
absl::string_view Text(Fault fault);

// Returns the status of a group that ended because of `culprit`. If `detail` is
// empty, the message is for example "rank 1 has died".
absl::Status StatusOf(Fault fault, int culprit, const std::string& detail);

}  // namespace penstock::collectives

#endif  // PENSTOCK_COLLECTIVES_FAULT_H_
