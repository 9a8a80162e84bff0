// Tests the registry in the child of a fork.

#include <sys/wait.h>
#include <unistd.h>

#include <memory>

#include "gtest/gtest.h"
#include "transport/metrics/registry.h"

namespace penstock {
namespace metrics {
namespace {

class Locked : public Source {
 public:
  std::shared_ptr<Source> Keep() override { return nullptr; }
  void Collect(Snapshot*) override {
    if (collects_in == getpid()) return;
    _exit(3);
  }
  const pid_t collects_in = getpid();
};

int CodeOf(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : -1; }

TEST(RegistryInAChild, BeginsEmptyAndAsksNothingOfTheParents) {
  Locked source;
  auto registration = std::make_unique<Registration>(&source);
  Registry::Get()->Count(Metric::kRefused, {Refusal::kFlood});
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(20);  // ends the child if it waits for a lock forever
    const Snapshot mine = Registry::Get()->Collect();
    registration = nullptr;
    Registry::Get()->Count(Metric::kRefused, {Refusal::kToken});
    _exit(mine.Get(Metric::kRefused, {Refusal::kFlood}) == 0 ? 0 : 1);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_EQ(CodeOf(status), 0);
  const Snapshot mine = Registry::Get()->Collect();
  EXPECT_EQ(mine.Get(Metric::kRefused, {Refusal::kFlood}), 1u);
  EXPECT_EQ(mine.Get(Metric::kRefused, {Refusal::kToken}), 0u);
}

// Tests the first source in a forked child. The source counts as the first, no
// matter how many sources the parent had.
TEST(RegistryInAChild, CallsAtItsOwnFirstSource) {
  static int calls = 0;
  Registry::Get()->CallAtFirstSource([] { ++calls; });
  Locked source;
  const Registration registration(&source);
  const int in_parent = calls;
  EXPECT_GE(in_parent, 1);
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(20);
    Locked first;
    const Registration of_child(&first);
    Locked second;
    const Registration another(&second);
    _exit(calls - in_parent);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_EQ(CodeOf(status), 1);
}

}  // namespace
}  // namespace metrics
}  // namespace penstock
