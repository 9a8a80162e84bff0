// Tests, for random runs, that each stream ends, and delivers exactly the sent
// messages, in order and once. At the end, nothing waits and nothing remains.

#include "tests/transport/session/simulation.h"

#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace penstock {
namespace session {
namespace {

constexpr uint32_t kSeeds = 200;

// Stops at the first seed that fails. To investigate that seed, start the loop
// there.
void RunSeeds(const SimulationOptions& options) {
  for (uint32_t seed = 1; seed <= kSeeds; ++seed) {
    Simulation simulation(seed, options);
    const std::vector<std::string> errors = simulation.Run();
    for (const std::string& error : errors) {
      ADD_FAILURE() << "seed " << seed << ": " << error;
    }
    if (!errors.empty()) return;
  }
}

TEST(Simulation, LifelineAloneDeliversAll) { RunSeeds(SimulationOptions()); }

TEST(Simulation, FastPathDeliversAll) {
  SimulationOptions options;
  options.offers_path = true;
  RunSeeds(options);
}

TEST(Simulation, FastPathThatFailsLosesNothing) {
  SimulationOptions options;
  options.offers_path = true;
  options.path_faults = 3;
  RunSeeds(options);
}

TEST(Simulation, LostLifelineEndsAllStreamsAndLeavesNothing) {
  SimulationOptions options;
  options.offers_path = true;
  options.path_faults = 1;
  options.loses_lifeline = true;
  RunSeeds(options);
}

}  // namespace
}  // namespace session
}  // namespace penstock
