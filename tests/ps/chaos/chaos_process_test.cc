// Tests a training of real processes under random faults. Servers and workers
// are killed and stopped, servers are restarted in wrong ways, chiefs give up,
// and checkpoints are taken. Then the faults end. The training must continue,
// take a checkpoint, and continue from that checkpoint on other servers.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/ps/chaos/scene.h"
#include "tests/ps/chaos/trainer.h"
#include "tests/ps/seeds.h"

namespace penstock::ps {
namespace {

constexpr char kTrainerFlag[] = "--trainer";
TEST(ChaosProcessTest, ProcessesForgetAndRepeatNothing) {
  Seeds& seeds = ChosenSeeds();
  size_t acknowledged = 0;
  size_t checkpoints = 0;
  for (uint64_t seed = seeds.first(); seeds.Wants(seed); ++seed) {
    std::string folder = testing::TempDir() + "/chaos-XXXXXX";
    ASSERT_NE(mkdtemp(&folder[0]), nullptr);
    {
      Scene scene(seed, folder);
      scene.Run();
      if (HasFailure()) {
        FAIL() << scene.History() << folder << " has logs and checkpoints; "
               << RepeatWith(seed);
      }
      acknowledged += scene.acknowledged();
      checkpoints += scene.checkpoints();
    }
    std::filesystem::remove_all(folder);
  }
  seeds.Print();
  std::printf("%zu pushes, %zu checkpoints\n", acknowledged, checkpoints);
}

}  // namespace
}  // namespace penstock::ps

int main(int argc, char** argv) {
  if (argc > 4 && std::string(argv[1]) == penstock::ps::kTrainerFlag) {
    return penstock::ps::BeTrainer(
        penstock::ps::TrainerArguments::From({argv + 2, argv + argc}));
  }
  return penstock::ps::RunWithSeeds(argc, argv, 1000000);
}
