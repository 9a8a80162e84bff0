#include "collectives/host/group.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <future>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "collectives/call.h"
#include "collectives/reduction/reduction.h"
#include "gtest/gtest.h"
#include "tensor_service/dtype.h"
#include "tests/collectives/host/ranks.h"

namespace penstock::collectives {
namespace {

using tensor::DType;

HostGroupOptions Ranks(int ranks) {
  HostGroupOptions options;
  options.ranks = ranks;
  return options;
}

std::string Text(const absl::Status& status) {
  return std::string(status.message());
}

TEST(HostGroup, OfOneRankReduces) {
  RunRanks(Ranks(1), [](HostGroup* group) {
    float value = 3;
    EXPECT_TRUE(
        group->AllReduce(ReduceOp::kAverage, DType::kF32, &value, &value, 1)
            .ok());
    EXPECT_EQ(value, 3);
    EXPECT_TRUE(group->Barrier().ok());
  });
}

TEST(HostGroup, DescribesItself) {
  RunRanks(Ranks(2), [](HostGroup* group) {
    if (group->rank() == 1) {
      EXPECT_EQ(group->Describe(),
                "rank 1 of 2 on one host, over shared memory");
    }
  });
}

TEST(HostGroup, ExchangesNoElements) {
  RunRanks(Ranks(2), [](HostGroup* group) {
    EXPECT_TRUE(
        group->AllReduce(ReduceOp::kSum, DType::kF32, nullptr, nullptr, 0)
            .ok());
    EXPECT_TRUE(group->AllToAll(DType::kF32, nullptr, nullptr, 0).ok());
  });
}

// Tests that each rank sees the full count. Without the barrier, a rank could
// see an earlier count.
TEST(HostGroup, BarrierWaitsForAllRanks) {
  constexpr int kRanks = 4, kRounds = 200;
  std::atomic<int> arrived{0};
  RunRanks(Ranks(kRanks), [&](HostGroup* group) {
    for (int round = 1; round <= kRounds; ++round) {
      ++arrived;
      ASSERT_TRUE(group->Barrier().ok());
      ASSERT_GE(arrived, round * kRanks);
    }
  });
}

TEST(HostGroup, MismatchNamesBothRanksAndCalls) {
  RunRanks(Ranks(3), [](HostGroup* group) {
    std::array<float, 9> data = {};
    const int64_t count = group->rank() == 1 ? 9 : 8;
    const absl::Status status = group->AllReduce(
        ReduceOp::kSum, DType::kF32, data.data(), data.data(), count);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    const std::string of_1 = "rank 1 calls all_reduce (sum) of 9 f32";
    const std::string of_0 = "rank 0 calls all_reduce (sum) of 8 f32";
    if (group->rank() == 0) {
      EXPECT_EQ(Text(status), of_1 + ", " + of_0);
    }
    if (group->rank() == 1) {
      EXPECT_EQ(Text(status), of_0 + ", " + of_1);
    }
    // Expects the same error from the next operation, because the group has
    // ended.
    EXPECT_EQ(group->Barrier(), status);
  });
}

TEST(HostGroup, MismatchOfOperationsIsDescribed) {
  RunRanks(Ranks(2), [](HostGroup* group) {
    int32_t value = 0;
    absl::Status status;
    if (group->rank() == 0) {
      status = group->Broadcast(DType::kInt32, &value, 1, 1);
    } else {
      status = group->Barrier();
    }
    const std::string broadcast =
        "rank 0 calls broadcast of 1 int32 with root 1";
    const std::string barrier = "rank 1 calls barrier";
    EXPECT_EQ(Text(status), group->rank() == 0 ? barrier + ", " + broadcast
                                               : broadcast + ", " + barrier);
  });
}

TEST(HostGroup, ARankThatLeavesIsNamed) {
  RunRanks(Ranks(3), [](HostGroup* group) {
    EXPECT_TRUE(group->Barrier().ok());
    if (group->rank() == 2) return;
    const absl::Status status = group->Barrier();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(Text(status).substr(0, 25), "rank 2 has left the group");
  });
}

TEST(HostGroup, ATimeoutNamesTheLateRank) {
  HostGroupOptions options = Ranks(2);
  options.timeout = absl::ZeroDuration();
  RunRanks(options, [](HostGroup* group) {
    if (group->rank() == 1) return (void)group->Abort();
    const absl::Status status = group->Barrier();
    // Accepts also the error that rank 1 has ended, if rank 1 reports this
    // first.
    if (status.code() == absl::StatusCode::kDeadlineExceeded) {
      EXPECT_EQ(Text(status), "rank 1 did not call the operation within 0");
    }
    EXPECT_FALSE(status.ok());
  });
}

// Aborts at rank 2, which stays in the group until the other ranks have got the
// error.
TEST(HostGroup, AbortEndsTheOperationsOfAllRanks) {
  std::promise<void> know[2];
  RunRanks(Ranks(3), [&](HostGroup* group) {
    if (group->rank() == 2) {
      group->Abort();  // without an operation
      for (std::promise<void>& each : know) each.get_future().wait();
      EXPECT_EQ(Text(group->Barrier()), "rank 2 aborted the group");
      return;
    }
    const absl::Status status = group->Barrier();
    know[group->rank()].set_value();
    EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
    EXPECT_EQ(Text(status).substr(0, 24), "rank 2 aborted the group");
  });
}

// Aborts at rank 1, most likely while rank 0 waits in its barrier. The error
// must not say that the operations differ.
TEST(HostGroup, AnAbortDuringAWaitIsNoMismatch) {
  for (int round = 0; round < 20; ++round) {
    std::promise<void> aborted;
    std::promise<void> knows;
    RunRanks(Ranks(2), [&](HostGroup* group) {
      absl::Status status;
      if (group->rank() == 0) {
        std::atomic<bool> begins{false};
        std::thread waiter([&] {
          begins = true;
          status = group->Barrier();
        });
        while (!begins) std::this_thread::yield();
        for (int i = 0; i < 50; ++i) std::this_thread::yield();
        group->Abort();
        aborted.set_value();
        waiter.join();
        knows.get_future().wait();
      } else {
        aborted.get_future().wait();
        int8_t value = 0;
        status = group->Broadcast(DType::kInt8, &value, 1, 0);
        knows.set_value();
      }
      EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
    });
  }
}

// Rank 2 never comes to the barrier, so rank 0 gives up. Rank 1 has a longer
// timeout, but fails when rank 0 gives up.
TEST(HostGroup, ARankThatGivesUpEndsTheWaitsOfOthers) {
  std::promise<void> knows;
  RunRanksWith(
      3,
      [](int rank) {
        HostGroupOptions options = Ranks(3);
        if (rank == 0) options.timeout = absl::ZeroDuration();
        return options;
      },
      [&](HostGroup* group) {
        if (group->rank() == 2) return knows.get_future().wait();
        const absl::Status status = group->Barrier();
        EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
        if (group->rank() == 1) knows.set_value();
      });
}

TEST(HostGroup, ARankMayLeaveAfterTheLastOperation) {
  HostGroupOptions options = Ranks(3);
  options.polling = progress::PollingMode::kEvent;  // looks for faults at once
  for (int round = 0; round < 100; ++round) {
    RunRanks(options, [](HostGroup* group) {
      const absl::Status status = group->Barrier();
      EXPECT_TRUE(status.ok()) << status;
    });
  }
}

TEST(HostGroup, WrongArgumentsAreRefusedBeforeTheRanksMeet) {
  RunRanks(Ranks(2), [](HostGroup* group) {
    std::array<float, 4> data = {};
    const auto reduce = [&](int64_t count, const void* in, void* out) {
      return Text(
          group->AllReduce(ReduceOp::kSum, DType::kF32, in, out, count));
    };
    EXPECT_EQ(reduce(-1, data.data(), data.data()),
              "count is -1, expected 0 to 35184372088832");
    EXPECT_EQ(
        reduce(std::numeric_limits<int64_t>::max(), data.data(), data.data()),
        "count is 9223372036854775807, expected 0 to "
        "35184372088832");
    EXPECT_EQ(reduce(2, data.data(), data.data() + 1),
              "input and output overlap");
    EXPECT_EQ(Text(group->Broadcast(DType::kF32, data.data(), 1, 2)),
              "root is 2, expected 0 to 1");
    EXPECT_EQ(Text(group->AllReduce(ReduceOp::kXor, DType::kF32, data.data(),
                                    data.data(), 1)),
              "no xor of f32");
    EXPECT_TRUE(group->Barrier().ok());
  });
}

// Returns bytes that differ by rank, and do not repeat at any power of two.
std::vector<uint8_t> LargeOperand(int rank, int64_t count) {
  constexpr size_t kPeriod = 65'521;  // a prime
  std::vector<uint8_t> bytes(kPeriod);
  for (size_t i = 0; i < kPeriod; ++i) {
    bytes[i] = static_cast<uint8_t>(i * 31 + i / 251 + rank);
  }
  bytes.resize(count);
  // Copies whole periods: a loop over all bytes is slow with sanitizers.
  for (size_t done = kPeriod; done < bytes.size(); done *= 2) {
    std::memcpy(bytes.data() + done, bytes.data(),
                std::min(done, bytes.size() - done));
  }
  return bytes;
}

// Results of this size bypass the caches.
TEST(HostGroup, LargeResultsAreWhole) {
  constexpr int64_t kCount = (int64_t{16} << 20) + 77;
  RunRanks(Ranks(2), [](HostGroup* group) {
    const std::vector<uint8_t> operands[] = {LargeOperand(0, kCount),
                                             LargeOperand(1, kCount)};
    std::vector<uint8_t> own = operands[group->rank()];
    std::vector<uint8_t> all(2 * kCount);
    ASSERT_TRUE(
        group->AllGather(DType::kUint8, own.data(), all.data(), kCount).ok());
    ASSERT_TRUE(group->Broadcast(DType::kUint8, own.data(), kCount, 1).ok());
    for (const int rank : {0, 1}) {
      EXPECT_EQ(std::memcmp(all.data() + rank * kCount, operands[rank].data(),
                            kCount),
                0);
    }
    EXPECT_EQ(std::memcmp(own.data(), operands[1].data(), kCount), 0);
  });
}

// Each rank overwrites its memory when an operation returns. A rank that still
// reads another's memory would see the new values.
TEST(HostGroup, MemoryOfThePoolIsReadBeforeTheOperationReturns) {
  static constexpr int64_t kCount = 200'000;
  HostGroupOptions options = Ranks(4);
  options.pool_bytes = 1 << 20;
  RunRanks(options, [](HostGroup* group) {
    auto memory = group->Allocate(kCount * sizeof(float));
    ASSERT_TRUE(memory.ok()) << memory.status();
    auto* const data = static_cast<float*>((*memory)->data());
    std::vector<float> copy(kCount);
    for (int round = 0; round < 30; ++round) {
      std::fill_n(data, kCount, static_cast<float>(round));
      const bool reduces = round % 2 == 0;
      const absl::Status status =
          reduces ? group->AllReduce(ReduceOp::kSum, DType::kF32, data, data,
                                     kCount)
                  : group->Broadcast(DType::kF32, data, kCount, 0);
      ASSERT_TRUE(status.ok()) << status;
      // Copies the result. The root of a broadcast has no result.
      if (reduces || group->rank() > 0) std::copy_n(data, kCount, copy.begin());
      std::fill_n(data, kCount, -1.0F);
      if (!reduces && group->rank() == 0) continue;
      const auto expected = static_cast<float>(reduces ? 4 * round : round);
      ASSERT_EQ(std::count(copy.begin(), copy.end(), expected), kCount)
          << "round " << round;
    }
  });
}

TEST(HostGroup, PoolGivesItsMemoryAndTakesItBack) {
  HostGroupOptions options = Ranks(1);
  options.pool_bytes = 8192;
  RunRanks(options, [](HostGroup* group) {
    auto first = group->Allocate(8000);
    ASSERT_TRUE(first.ok()) << first.status();
    EXPECT_EQ(Text(group->Allocate(8000).status()),
              "no 8000 contiguous bytes are free in the pool of 8192 bytes");
    first->reset();
    EXPECT_TRUE(group->Allocate(8000).ok());
  });
}

// Forks at rank 0. The child must neither use the parent's group nor end the
// parent's membership: rank 1 must see that rank 0 is late, not that rank 0 has
// left.
TEST(HostGroup, IsTheParentsAfterAFork) {
  HostGroupOptions options = Ranks(2);
  options.timeout = absl::ZeroDuration();
  std::promise<void> forked, checked;
  RunRanks(options, [&](HostGroup* group) {
    if (group->rank() == 1) {
      forked.get_future().wait();
      EXPECT_EQ(group->Barrier().code(), absl::StatusCode::kDeadlineExceeded);
      checked.set_value();
      return;
    }
    const pid_t child = fork();
    if (child == 0) {
      const bool refused =
          group->Barrier().code() == absl::StatusCode::kFailedPrecondition;
      group->~HostGroup();
      _exit(refused ? 0 : 1);
    }
    int result = -1;
    waitpid(child, &result, 0);
    EXPECT_EQ(result, 0);
    forked.set_value();
    checked.get_future().wait();
  });
}

TEST(Call, OfAHostilePeerIsDescribed) {
  EXPECT_EQ(Describe({~uint64_t{0}, 1}), "an unknown operation");
  EXPECT_EQ(Describe({0, 1}), "an unknown operation");  // no type
}

}  // namespace
}  // namespace penstock::collectives
