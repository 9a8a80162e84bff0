#include "tests/ps/simulation/simulation.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "tests/ps/seeds.h"

namespace penstock::ps {
namespace {

TEST(SimulationTest, ClusterForgetsAndRepeatsNothing) {
  Seeds& seeds = ChosenSeeds();
  Tally all;
  for (uint64_t seed = seeds.first(); seeds.Wants(seed); ++seed) {
    Simulation simulation(seed);
    simulation.Run();
    all.Add(simulation.tally());
    if (simulation.wrong().empty()) continue;
    for (const std::string& wrong : simulation.wrong()) ADD_FAILURE() << wrong;
    FAIL() << simulation.History() << "\n" << RepeatWith(seed);
  }
  seeds.Print();
  std::printf(
      "%zu events, %zu pushes, %zu checkpoints, %zu restores, %zu refusals, "
      "%zu deaths of servers, %zu lost letters, %zu workers attached again\n",
      all.events, all.acknowledged, all.checkpoints, all.restores, all.refusals,
      all.deaths, all.lost_letters, all.reattached);
}

}  // namespace
}  // namespace penstock::ps

int main(int argc, char** argv) {
  return penstock::ps::RunWithSeeds(argc, argv, 1000000);
}
