// Tries the fabrics that a connection of this process would try.

#ifndef PENSTOCK_CLI_DOCTOR_TRIAL_H_
#define PENSTOCK_CLI_DOCTOR_TRIAL_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "transport/settings/settings.h"

namespace penstock::cli {

// The results of the fabrics that a connection tries, by name: OK, or the
// reason for the failure. Omits fabrics that no connection would try.
using Trials = std::map<std::string, absl::Status>;

// Tries the fabrics by the code of real connections, with a peer that has the
// same settings. Over shm, connects this process to itself. Over verbs, only
// prepares the offer to a peer, because this machine may be unable to reach its
// own address. Requires a policy other than off. Blocks for at most three
// seconds, plus the trial of RDMA devices.
Trials TryFabrics(const Settings& settings);

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_DOCTOR_TRIAL_H_
