#include "tests/ps/failover/checkpoints.h"

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "ps/checkpoint/chain.h"
#include "ps/checkpoint/posix_files.h"
#include "transport/base/steady_time.h"

namespace penstock::ps {

uint64_t NewestIn(const std::string& folder) {
  const auto files = checkpoint::OpenFolder(folder);
  if (!files.ok()) return 0;
  const auto steps = checkpoint::ListSteps(files->get());
  return steps.ok() && !steps->empty() ? steps->front() : 0;
}

void AwaitCheckpointAfter(const std::string& folder, uint64_t step) {
  const absl::Time limit = base::SteadyNow() + absl::Seconds(30);
  while (NewestIn(folder) <= step && base::SteadyNow() < limit) {
    absl::SleepFor(absl::Milliseconds(50));
  }
  EXPECT_GT(NewestIn(folder), step);
}

}  // namespace penstock::ps
