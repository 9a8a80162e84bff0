#include "collectives/net/group.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "collectives/reduction/reduction.h"
#include "gtest/gtest.h"
#include "tensor_service/dtype.h"
#include "tests/collectives/net/ranks.h"

namespace penstock::collectives {
namespace {

using tensor::DType;

const ListenerOptions kTcpOnly = Over({Fabric::kTcp});

std::string Text(const absl::Status& status) {
  return std::string(status.message());
}

// Returns the error's text, without the prefix that ranks add to an error of
// another rank.
std::string Cause(const absl::Status& status) {
  const std::string text = Text(status);
  return text.substr(0, text.find(", as rank"));
}

TEST(NetGroup, OfOneRankReduces) {
  RunRanks(OpenTeam(1, kTcpOnly), {}, [](NetGroup* group) {
    float value = 3;
    EXPECT_TRUE(
        group->AllReduce(ReduceOp::kAverage, DType::kF32, &value, &value, 1)
            .ok());
    EXPECT_EQ(value, 3);
    EXPECT_TRUE(group->Barrier().ok());
  });
}

TEST(NetGroup, DescribesPathsAndAlgorithms) {
  NetGroupOptions options;
  options.algorithms = "all_reduce=ring";
  Meet end(2);
  RunRanks(OpenTeam(2, kTcpOnly), options, [&](NetGroup* group) {
    std::array<float, 4> data = {1, 2, 3, 4};
    EXPECT_TRUE(group
                    ->AllReduce(ReduceOp::kSum, DType::kF32, data.data(),
                                data.data(), 4)
                    .ok());
    const std::string text = group->Describe();
    EXPECT_TRUE(absl::StrContains(text,
                                  " over tcp\nall_reduce of 4 elements "
                                  "on 2 ranks: ring, forced"))
        << text;
    end.Wait();
  });
}

TEST(NetGroup, ReducesOverSharedMemory) {
  Meet end(2);
  RunRanks(OpenTeam(2, Over({Fabric::kShm, Fabric::kTcp})), {},
           [&](NetGroup* group) {
             std::vector<int32_t> data(300'000, group->rank() + 1);
             ASSERT_TRUE(group
                             ->AllReduce(ReduceOp::kSum, DType::kInt32,
                                         data.data(), data.data(),
                                         static_cast<int64_t>(data.size()))
                             .ok());
             EXPECT_EQ(data, std::vector<int32_t>(data.size(), 3));
             EXPECT_TRUE(absl::StrContains(group->Describe(), " over shm"))
                 << group->Describe();
             end.Wait();
           });
}

// Tests that no part is sent late. Parts refer to the ranks' memory, and each
// rank overwrites its memory when an operation returns. A late part has wrong
// values.
TEST(NetGroup, MemoryIsSentBeforeTheOperationReturns) {
  constexpr int64_t kBytes = int64_t{12} << 20;
  for (const std::string algorithm : {"ring", "halving-doubling"}) {
    NetGroupOptions options;
    options.algorithms = "all_reduce=" + algorithm;
    Meet end(3);
    RunRanks(OpenTeam(3, kTcpOnly), options, [&](NetGroup* group) {
      std::vector<uint8_t> data(kBytes);
      for (int round = 0; round < 6; ++round) {
        std::memset(data.data(), 10 * round + group->rank(), kBytes);
        const absl::Status status = group->AllReduce(
            ReduceOp::kMax, DType::kUint8, data.data(), data.data(), kBytes);
        ASSERT_TRUE(status.ok()) << status;
        // Expects that all bytes are equal: the first has the right value, and
        // each equals the next.
        EXPECT_EQ(data[0], 10 * round + 2);
        EXPECT_EQ(std::memcmp(data.data(), data.data() + 1, kBytes - 1), 0);
        std::memset(data.data(), 255, kBytes);
      }
      end.Wait();
    });
  }
}

TEST(NetGroup, AverageOfBlocksIsDividedOnce) {
  RunRanks(OpenTeam(3, kTcpOnly), {}, [](NetGroup* group) {
    const std::array<double, 6> in = {3, 6, 9, 12, 15, 18};
    std::array<double, 2> out = {};
    ASSERT_TRUE(group
                    ->ReduceScatter(ReduceOp::kAverage, DType::kF64, in.data(),
                                    out.data(), 2)
                    .ok());
    EXPECT_EQ(out[0], in[2 * group->rank()]);
    EXPECT_EQ(out[1], in[2 * group->rank() + 1]);
  });
}

TEST(NetGroup, MismatchNamesBothRanksAndCallsOnAllRanks) {
  Meet end(3);
  RunRanks(OpenTeam(3, kTcpOnly), {}, [&](NetGroup* group) {
    std::array<float, 9> data = {};
    const int64_t count = group->rank() == 1 ? 9 : 8;
    const absl::Status status = group->AllReduce(
        ReduceOp::kSum, DType::kF32, data.data(), data.data(), count);
    // Calls one more operation, because a rank that needs nothing from rank 1
    // learns only then that the group has ended.
    const absl::Status next = group->Barrier();
    end.Wait();
    EXPECT_EQ(next.code(), absl::StatusCode::kInvalidArgument) << next;
    EXPECT_TRUE(
        absl::StrContains(next.message(), "rank 1 calls all_reduce (sum) of 9"))
        << next;
    EXPECT_TRUE(
        absl::StrContains(next.message(), "calls all_reduce (sum) of 8"))
        << next;
    if (!status.ok()) {
      EXPECT_EQ(next, status);
    }
  });
}

// Makes both ranks wait for a message that is never sent, each in a different
// operation.
TEST(NetGroup, RanksThatWaitForEachOtherInDifferentOperationsAreTold) {
  Meet end(2);
  RunRanks(OpenTeam(2, kTcpOnly), {}, [&](NetGroup* group) {
    int32_t value = 0;
    std::array<int32_t, 2> all = {};
    const absl::Status status =
        group->rank() == 0
            ? group->Gather(DType::kInt32, &value, all.data(), 1, 0)
            : group->Broadcast(DType::kInt32, &value, 1, 0);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), "calls gather of 1"))
        << status;
    EXPECT_TRUE(absl::StrContains(status.message(), "calls broadcast of 1"))
        << status;
    end.Wait();
  });
}

// Tests different operations on the ranks. The root of a small broadcast does
// not wait, so the other ranks find its message later.
TEST(NetGroup, AMismatchWithAnEarlierOperationIsFound) {
  Meet end(2);
  RunRanks(OpenTeam(2, kTcpOnly), {}, [&](NetGroup* group) {
    int32_t value = 0;
    absl::Status status = group->Broadcast(
        group->rank() == 0 ? DType::kInt32 : DType::kInt16, &value, 1, 0);
    if (status.ok()) status = group->Barrier();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), "broadcast of 1 int32"))
        << status;
    EXPECT_TRUE(absl::StrContains(status.message(), "broadcast of 1 int16"))
        << status;
    end.Wait();
  });
}

TEST(NetGroup, ARankThatLeavesIsNamed) {
  Meet end(2);
  RunRanks(OpenTeam(3, kTcpOnly), {}, [&](NetGroup* group) {
    EXPECT_TRUE(group->Barrier().ok());
    if (group->rank() == 2) return;
    const absl::Status status = group->Barrier();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(Cause(status), "rank 2 has left the group");
    end.Wait();
  });
}

TEST(NetGroup, ARankMayLeaveAfterTheLastOperation) {
  for (int round = 0; round < 10; ++round) {
    RunRanks(OpenTeam(3, kTcpOnly), {}, [](NetGroup* group) {
      std::vector<int16_t> data(20'000, 1);
      // Makes the root send its message and leave.
      const absl::Status status =
          group->Broadcast(DType::kInt16, data.data(), 20'000, 0);
      EXPECT_TRUE(status.ok()) << status;
    });
  }
}

TEST(NetGroup, ATimeoutNamesTheLateRank) {
  NetGroupOptions options;
  options.timeout = absl::ZeroDuration();
  Meet end(2);
  RunRanks(OpenTeam(2, kTcpOnly), options, [&](NetGroup* group) {
    if (group->rank() == 0) {
      const absl::Status status = group->Barrier();
      EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
      EXPECT_EQ(Text(status), "rank 1 did not call the operation within 0");
      EXPECT_EQ(group->Barrier(), status);
    }
    end.Wait();
  });
}

// Sends to a rank that never receives. Without a limit, the sender would buffer
// all messages.
TEST(NetGroup, SmallMessagesToARankThatReceivesNothingTimeOut) {
  NetGroupOptions options;
  options.timeout = absl::ZeroDuration();
  for (const int64_t bytes : {0, 64 * 1024}) {
    Meet end(2);
    RunRanks(OpenTeam(2, kTcpOnly), options, [&](NetGroup* group) {
      if (group->rank() == 0) {
        const std::vector<uint8_t> data(bytes);
        absl::Status status;
        for (int i = 0; i < 50'000 && status.ok(); ++i) {
          status = group->Send(DType::kUint8, data.data(), bytes, 1, 1);
        }
        EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
        EXPECT_EQ(Text(status), "rank 1 did not call the operation within 0");
      }
      end.Wait();
    });
  }
}

TEST(NetGroup, AbortEndsTheOperationsOfAllRanks) {
  Meet end(3);
  RunRanks(OpenTeam(3, kTcpOnly), {}, [&](NetGroup* group) {
    if (group->rank() == 2) group->Abort();
    const absl::Status status = group->Barrier();
    EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
    EXPECT_EQ(Cause(status), "rank 2 aborted the group");
    end.Wait();
  });
}

TEST(NetGroup, WrongArgumentsAreRefusedBeforeTheRanksMeet) {
  RunRanks(OpenTeam(2, kTcpOnly), {}, [](NetGroup* group) {
    std::array<float, 4> data = {};
    EXPECT_EQ(Text(group->Broadcast(DType::kF32, data.data(), -1, 0)),
              "count is -1, expected 0 to 35184372088832");
    EXPECT_EQ(Text(group->Broadcast(DType::kF32, data.data(), 1, 2)),
              "root is 2, expected 0 to 1");
    EXPECT_TRUE(group->Barrier().ok());
  });
}

TEST(NetGroup, IsTheParentsAfterAFork) {
  RunRanks(OpenTeam(2, kTcpOnly), {}, [](NetGroup* group) {
    if (group->rank() == 0) {
      const pid_t child = fork();
      if (child == 0) {
        const bool refused =
            group->Barrier().code() == absl::StatusCode::kFailedPrecondition;
        group->Abort();
        group->~NetGroup();
        _exit(refused ? 0 : 1);
      }
      int result = -1;
      waitpid(child, &result, 0);
      EXPECT_EQ(result, 0);
    }
    EXPECT_TRUE(group->Barrier().ok());
  });
}

}  // namespace
}  // namespace penstock::collectives
