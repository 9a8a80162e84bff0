// Compares the values of a cluster with the recorded pushes.

#ifndef PENSTOCK_TESTS_PS_CHAOS_CHECK_H_
#define PENSTOCK_TESTS_PS_CHAOS_CHECK_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "tests/ps/chaos/record.h"
#include "tests/ps/chaos/values.h"
#include "tests/ps/training/training.h"

namespace penstock::ps {

// Returns descriptions of violations of these rules:
//  - a push is applied at most once, and with its whole gradient;
//  - an acknowledged push is applied at all servers and tables, or at none;
//  - an acknowledged push of the present run, `run`, is applied;
//  - a push in `required`, which a checkpoint has, is applied;
//  - if an acknowledged push is applied, the earlier pushes of the same rank
// and run are applied, too, because only pushes after a cut can be lost;
//  - of each step of a rank, at most one acknowledged push is applied;
//  - dense values have the same steps as the rows next to them.
//
//  If a model has synchronous and other tables, a counted push may be late for
// the synchronous tables.
std::vector<std::string> CheckValues(const std::vector<Staleness>& policies,
                                     uint32_t workers,
                                     std::vector<RecordedPush> pushes,
                                     const std::set<uint64_t>& required,
                                     uint64_t run, const ClusterValues& values);

}  // namespace penstock::ps

#endif  // PENSTOCK_TESTS_PS_CHAOS_CHECK_H_
