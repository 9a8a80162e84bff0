// Runs a group over Soft-RoCE, in the virtual machine.

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "collectives/net/group.h"
#include "collectives/reduction/reduction.h"
#include "gtest/gtest.h"
#include "tensor_service/dtype.h"
#include "tests/collectives/net/ranks.h"
#include "tests/vm/vm_test.h"

namespace penstock::collectives {
namespace {

class OverVerbs : public VmTest {};

// Returns a team in which each rank has an address of one of the machine's two
// devices.
Team OpenTeamOnDevices() {
  Team team;
  for (const char* host : {"10.9.0.1", "10.9.0.2"}) {
    ListenerOptions options = Over({Fabric::kVerbs});
    options.host = host;
    auto listener = Listener::Open(options);
    EXPECT_TRUE(listener.ok()) << listener.status();
    team.addresses.push_back((*listener)->address());
    team.listeners.push_back(*std::move(listener));
  }
  return team;
}

TEST_F(OverVerbs, ReducesSmallAndLargeBuffers) {
  RunRanks(OpenTeamOnDevices(), {}, [](NetGroup* group) {
    // Repeats operations until all connections use verbs, because a connection
    // may begin over tcp.
    bool is_verbs = false;
    for (int round = 0; round < 50 && !is_verbs; ++round) {
      for (const int64_t count : {1, 300'000}) {
        std::vector<int32_t> data(count);
        std::iota(data.begin(), data.end(), group->rank());
        ASSERT_EQ(group->AllReduce(ReduceOp::kSum, tensor::DType::kInt32,
                                   data.data(), data.data(), count),
                  absl::OkStatus());
        for (int64_t i = 0; i < count; ++i) ASSERT_EQ(data[i], 2 * i + 1);
      }
      int32_t all_are_verbs =
          absl::StrContains(group->Describe(), " over verbs") ? 1 : 0;
      ASSERT_EQ(group->AllReduce(ReduceOp::kMin, tensor::DType::kInt32,
                                 &all_are_verbs, &all_are_verbs, 1),
                absl::OkStatus());
      is_verbs = all_are_verbs == 1;
    }
    EXPECT_TRUE(is_verbs) << group->Describe();
  });
}

}  // namespace
}  // namespace penstock::collectives
