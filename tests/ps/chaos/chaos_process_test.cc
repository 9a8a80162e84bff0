// Tests a training of real processes under random faults. Servers and workers
// are killed and stopped, servers are restarted in wrong ways, chiefs give up,
// and checkpoints are taken. Then the faults end. The training must continue,
// take a checkpoint, and continue from that checkpoint on other servers.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tests/ps/chaos/cluster.h"
#include "tests/ps/chaos/limit.h"
#include "tests/ps/chaos/scene.h"
#include "tests/ps/chaos/trainer.h"
#include "tests/ps/seeds.h"

namespace penstock::ps {
namespace {

constexpr char kTrainerFlag[] = "--trainer";

// Limits the time of a scene, which takes a few seconds. Less than the 300
// seconds after which Bazel kills this test without a message.
constexpr absl::Duration kMostTime = absl::Seconds(240);

TEST(ChaosProcessTest, ProcessesForgetAndRepeatNothing) {
  Seeds& seeds = ChosenSeeds();
  size_t acknowledged = 0;
  size_t checkpoints = 0;
  for (uint64_t seed = seeds.first(); seeds.Wants(seed); ++seed) {
    std::string folder = testing::TempDir() + "/chaos-XXXXXX";
    ASSERT_NE(mkdtemp(&folder[0]), nullptr);
    {
      Scene scene(seed, folder);
      const auto report = [&] {
        return absl::StrCat(scene.History(), LogsIn(folder), folder,
                            " has records and checkpoints; ", RepeatWith(seed));
      };
      const Limit limit(kMostTime, report);
      scene.Run();
      if (HasFailure()) FAIL() << report();
      acknowledged += scene.acknowledged();
      checkpoints += scene.checkpoints();
    }
    std::filesystem::remove_all(folder);
  }
  seeds.Print();
  std::printf("%zu pushes, %zu checkpoints\n", acknowledged, checkpoints);
}

// Returns the flag with the first seed of this shard of the Bazel test. There
// is one test, which gtest would run in the first shard only.
std::string FirstSeedOfShard() {
  int shard = 0;
  const char* const text = std::getenv("TEST_SHARD_INDEX");
  if (text != nullptr) (void)absl::SimpleAtoi(text, &shard);
  unsetenv("GTEST_TOTAL_SHARDS");
  unsetenv("GTEST_SHARD_INDEX");
  return absl::StrCat("--first=", 1 + 1000 * shard);
}

}  // namespace
}  // namespace penstock::ps

int main(int argc, char** argv) {
  if (argc > 4 && std::string(argv[1]) == penstock::ps::kTrainerFlag) {
    return penstock::ps::BeTrainer(
        penstock::ps::TrainerArguments::From({argv + 2, argv + argc}));
  }
  std::string first = penstock::ps::FirstSeedOfShard();
  std::vector<char*> arguments(argv, argv + argc);
  arguments.insert(arguments.begin() + 1, first.data());
  arguments.push_back(nullptr);
  return penstock::ps::RunWithSeeds(argc + 1, arguments.data(), 1000000);
}
