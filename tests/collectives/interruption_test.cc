// Tests waits that the program interrupts, in each kind of group.

#include "collectives/interruption.h"

#include <functional>
#include <future>
#include <string>

#include "absl/status/status.h"
#include "collectives/group.h"
#include "collectives/host/group.h"
#include "collectives/net/group.h"
#include "gtest/gtest.h"
#include "tensor_service/dtype.h"
#include "tests/collectives/host/ranks.h"
#include "tests/collectives/net/ranks.h"

namespace penstock::collectives {
namespace {

thread_local int times_asked = 0;

bool AtTheThirdTime() { return ++times_asked == 3; }

using Operation = std::function<absl::Status(Group*)>;

// Returns the program of a rank. Rank 0 is interrupted while it waits for rank
// 1, which then calls a barrier.
std::function<void(Group*)> Interrupting(const Operation& operation,
                                         std::promise<void>* interrupted) {
  return [=](Group* group) {
    absl::Status status;
    if (group->rank() == 0) {
      times_asked = 0;
      const Interruptible interruptible(&AtTheThirdTime);
      status = operation(group);
      EXPECT_EQ(times_asked, 3);
      interrupted->set_value();
    } else {
      interrupted->get_future().wait();
      // Calls the barrier again, because rank 0 may have sent its part of the
      // first barrier.
      status = group->Barrier();
      if (status.ok()) status = group->Barrier();
    }
    EXPECT_TRUE(absl::IsCancelled(status)) << status;
    EXPECT_EQ(status.message().substr(0, 24), "rank 0 aborted the group");
  };
}

void EndsGroup(const Operation& operation) {
  {
    std::promise<void> interrupted;
    HostGroupOptions options;
    options.ranks = 2;
    RunRanks(options, Interrupting(operation, &interrupted));
  }
  std::promise<void> interrupted;
  RunRanks(OpenTeam(2, Over({Fabric::kTcp})), NetGroupOptions(),
           Interrupting(operation, &interrupted));
}

TEST(Interruption, EndsABarrierOnAllRanks) {
  EndsGroup([](Group* group) { return group->Barrier(); });
}

TEST(Interruption, EndsAReceiveAndTheGroup) {
  EndsGroup([](Group* group) {
    char byte = 0;
    return group->Receive(tensor::DType::kUint8, &byte, 1, 1, 0);
  });
}

TEST(Interruption, IsAskedOfTheInnermostObjectOfTheThread) {
  EXPECT_FALSE(IsWaitInterrupted());
  const Interruptible outer([] { return true; });
  EXPECT_TRUE(IsWaitInterrupted());
  {
    const Interruptible inner(nullptr);
    EXPECT_FALSE(IsWaitInterrupted());
  }
  EXPECT_TRUE(IsWaitInterrupted());
  std::async(std::launch::async, [] {
    EXPECT_FALSE(IsWaitInterrupted());
  }).get();
}

}  // namespace
}  // namespace penstock::collectives
