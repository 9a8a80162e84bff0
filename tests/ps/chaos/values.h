// Reads all values of a cluster.

#ifndef PENSTOCK_TESTS_PS_CHAOS_VALUES_H_
#define PENSTOCK_TESTS_PS_CHAOS_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ps/client/training_connection.h"
#include "tests/ps/chaos/record.h"

namespace penstock::ps {

// The values of all servers, by policy.
struct ClusterValues {
  std::vector<std::vector<float>> dense;
  std::vector<std::map<uint64_t, float>> rows;  // of all pushes
};

// Blocks until the servers have applied all pushes that they have taken.
// Returns an error if the servers belong to different runs or have restored
// different steps.
absl::Status AwaitApplied(const TrainingConnection::Channels& servers);

absl::StatusOr<ClusterValues> ReadValues(
    const std::shared_ptr<const TrainingConnection>& connection,
    size_t policies, const std::vector<RecordedPush>& pushes);

}  // namespace penstock::ps

#endif  // PENSTOCK_TESTS_PS_CHAOS_VALUES_H_
