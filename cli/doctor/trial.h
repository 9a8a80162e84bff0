// Tries what a connection of this process would try.

#ifndef PENSTOCK_CLI_DOCTOR_TRIAL_H_
#define PENSTOCK_CLI_DOCTOR_TRIAL_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "transport/settings/settings.h"

namespace penstock::cli {

// The results of the fabrics that a connection tries, by their names: OK, or
// why a fabric cannot be had. Lacks the fabrics that no connection would try.
using Trials = std::map<std::string, absl::Status>;

// Takes the steps of a connection to a peer with the same settings, by the code
// that connections use. Over shm connects this process to itself; of verbs only
// makes the offer, as an address may lead nowhere from here. Needs a policy
// other than off. Blocks for three seconds at most, and where there are RDMA
// devices for their trial.
Trials TryFabrics(const Settings& settings);

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_DOCTOR_TRIAL_H_
