#include "collectives/hierarchical/group.h"

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "collectives/reduction/reduction.h"
#include "gtest/gtest.h"
#include "tensor_service/dtype.h"
#include "tests/collectives/net/ranks.h"
#include "tests/ps/optim/random_values.h"

namespace penstock::collectives {
namespace {

using tensor::DType;
using Floats = std::vector<float>;
using Random = std::mt19937_64;

// Forms a group whose ranks are on `hosts`. Calls `run` for each rank on its
// own thread.
void RunOn(const std::vector<int>& hosts,
           const std::function<void(HierarchicalGroup* group)>& run) {
  Team team;
  for (const int host : hosts) {
    ListenerOptions options = Over({Fabric::kTcp});
    options.neighbourhood = absl::StrCat("host", host);
    Team one = OpenTeam(1, options);
    team.listeners.push_back(std::move(one.listeners[0]));
    team.addresses.push_back(one.addresses[0]);
  }
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < hosts.size(); ++rank) {
    threads.emplace_back([&, rank] {
      NetGroupOptions options;
      options.rank = static_cast<int>(rank);
      auto group = HierarchicalGroup::Form(std::move(team.listeners[rank]),
                                           team.addresses, options);
      ASSERT_TRUE(group.ok()) << group.status();
      run(group->get());
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Returns small whole numbers. Their sum does not depend on the order.
Floats Operand(int rank, int64_t count, uint64_t seed) {
  Floats operand(count);
  for (int64_t i = 0; i < count; ++i) {
    operand[i] = static_cast<float>((seed + rank * 7 + i * 3) % 11);
  }
  return operand;
}

Floats Reduced(ReduceOp op, int ranks, int64_t count, uint64_t seed) {
  std::vector<Floats> operands;
  std::vector<const void*> from;
  for (int rank = 0; rank < ranks; ++rank) {
    operands.push_back(Operand(rank, count, seed));
  }
  for (const Floats& operand : operands) from.push_back(operand.data());
  Floats sum(count);
  collectives::Reduce(op, DType::kF32, from, sum.data(), count);
  return sum;
}

// Returns elements [begin, begin + count).
Floats Part(const Floats& all, int64_t begin, int64_t count) {
  return Floats(all.begin() + begin, all.begin() + begin + count);
}

// Runs one operation, and compares the result with that of plain loops.
void Check(Group* group, int operation, ReduceOp op, int64_t count, int root,
           uint64_t seed) {
  const int rank = group->rank();
  const int ranks = group->ranks();
  Floats in = Operand(rank, count, seed);
  Floats all_in = Operand(rank, count * ranks, seed);
  Floats out(count);
  Floats all_out(count * ranks);
  Floats gathered;
  for (int peer = 0; peer < ranks; ++peer) {
    const Floats block = Operand(peer, count, seed);
    gathered.insert(gathered.end(), block.begin(), block.end());
  }
  constexpr DType kType = DType::kF32;
  switch (operation) {
    case 0:
      ASSERT_EQ(group->AllReduce(op, kType, in.data(), out.data(), count),
                absl::OkStatus());
      ASSERT_EQ(out, Reduced(op, ranks, count, seed));
      break;
    case 1:
      ASSERT_EQ(group->Broadcast(kType, in.data(), count, root),
                absl::OkStatus());
      ASSERT_EQ(in, Operand(root, count, seed));
      break;
    case 2:
      ASSERT_EQ(group->AllGather(kType, in.data(), all_out.data(), count),
                absl::OkStatus());
      ASSERT_EQ(all_out, gathered);
      break;
    case 3:
      ASSERT_EQ(
          group->ReduceScatter(op, kType, all_in.data(), out.data(), count),
          absl::OkStatus());
      ASSERT_EQ(out, Part(Reduced(op, ranks, count * ranks, seed), rank * count,
                          count));
      break;
    case 4:
      ASSERT_EQ(group->Reduce(op, kType, in.data(), in.data(), count, root),
                absl::OkStatus());
      if (rank == root) {
        ASSERT_EQ(in, Reduced(op, ranks, count, seed));
      }
      break;
    case 5:
      ASSERT_EQ(group->Gather(kType, in.data(), all_out.data(), count, root),
                absl::OkStatus());
      if (rank == root) {
        ASSERT_EQ(all_out, gathered);
      }
      break;
    case 6:
      ASSERT_EQ(group->Send(kType, in.data(), count, (rank + 1) % ranks, 0),
                absl::OkStatus());
      ASSERT_EQ(group->Receive(kType, out.data(), count,
                               (rank + ranks - 1) % ranks, 0),
                absl::OkStatus());
      ASSERT_EQ(out, Operand((rank + ranks - 1) % ranks, count, seed));
      break;
    default:
      ASSERT_EQ(group->Barrier(), absl::OkStatus());
  }
}

TEST(HierarchicalGroup, RandomProgramsGiveTheResultsOfPlainLoops) {
  Random random(ps::optim::NewSeed());
  for (int program = 0; program < 6 && !testing::Test::HasFailure();
       ++program) {
    std::vector<int> hosts(2 + random() % 5);
    const uint64_t most = 1 + random() % 3;
    for (int& host : hosts) host = static_cast<int>(random() % most);
    const uint64_t seed = random();
    RunOn(hosts, [&](HierarchicalGroup* group) {
      Random steps(seed);
      const ReduceOp ops[] = {ReduceOp::kSum, ReduceOp::kMax,
                              ReduceOp::kAverage};
      for (int step = 0; step < 12 && !testing::Test::HasFailure(); ++step) {
        const auto operation = static_cast<int>(steps() % 8);
        const ReduceOp op = ops[steps() % 3];
        // Sends only small messages to the next rank in operation 6, because a
        // rank buffers only small messages.
        const int64_t count = int64_t{1} << steps() % (operation == 6 ? 8 : 17);
        const auto root = static_cast<int>(steps() % hosts.size());
        SCOPED_TRACE(absl::StrCat("operation ", operation, ", count ", count,
                                  ", ", group->Describe()));
        Check(group, operation, op, count, root, steps() % 1000);
      }
    });
  }
}

// Tests that the ranks of a host are summed in the order of their ranks. With
// two hosts, the sum of the hosts has only one possible order.
TEST(HierarchicalGroup, ReducesWithinHostsFirst) {
  constexpr int64_t kCount = 1000;
  Random random(ps::optim::NewSeed());
  std::vector<Floats> operands(5, Floats(kCount));
  for (Floats& operand : operands) {
    for (float& value : operand) {
      value = std::uniform_real_distribution<float>(-2, 2)(random);
    }
  }
  const auto sum = [](const std::vector<const void*>& from) {
    Floats into(kCount);
    collectives::Reduce(ReduceOp::kSum, DType::kF32, from, into.data(), kCount);
    return into;
  };
  const Floats first =
      sum({operands[0].data(), operands[2].data(), operands[3].data()});
  const Floats second = sum({operands[1].data(), operands[4].data()});
  const Floats expected = sum({first.data(), second.data()});
  RunOn({0, 1, 0, 0, 1}, [&](HierarchicalGroup* group) {
    Floats data = operands[group->rank()];
    ASSERT_TRUE(group
                    ->AllReduce(ReduceOp::kSum, DType::kF32, data.data(),
                                data.data(), kCount)
                    .ok());
    EXPECT_EQ(data, expected);
  });
}

// Makes rank `odd` call another operation than the other ranks. Expects that
// all ranks get an error that names both calls.
void ExpectMismatch(int odd, const std::function<absl::Status(Group*)>& of_odd,
                    const std::function<absl::Status(Group*)>& of_others) {
  Meet begin(4);
  Meet end(4);
  RunOn({0, 0, 1, 1}, [&](HierarchicalGroup* group) {
    begin.Wait();
    absl::Status status =
        group->rank() == odd ? of_odd(group) : of_others(group);
    if (status.ok()) status = group->Barrier();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), absl::StrCat("rank ", odd)))
        << status;
    end.Wait();
  });
}

absl::Status Sum(Group* group, ReduceOp op) {
  float value = 1;
  return group->AllReduce(op, DType::kF32, &value, &value, 1);
}

TEST(HierarchicalGroup, AnAverageIsNoSumOnAnyRank) {
  for (const int odd : {0, 3}) {
    ExpectMismatch(
        odd, [](Group* group) { return Sum(group, ReduceOp::kAverage); },
        [](Group* group) { return Sum(group, ReduceOp::kSum); });
  }
}

// Tests two operations. Only the gather runs over the group of all ranks.
TEST(HierarchicalGroup, AnOperationWithoutPhasesIsNoneWithPhases) {
  ExpectMismatch(
      3,
      [](Group* group) {
        float value = 1;
        return group->Gather(DType::kF32, &value, nullptr, 1, 0);
      },
      [](Group* group) { return Sum(group, ReduceOp::kSum); });
}

TEST(HierarchicalGroup, AbortEndsTheOperationsOfAllRanks) {
  Meet begin(4);
  Meet end(4);
  RunOn({0, 1, 0, 1}, [&](HierarchicalGroup* group) {
    begin.Wait();  // all ranks have formed the group
    if (group->rank() == 3) group->Abort();
    const absl::Status status = Sum(group, ReduceOp::kSum);
    EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
    EXPECT_TRUE(absl::StartsWith(status.message(), "rank 3 aborted the group"))
        << status;
    end.Wait();
  });
}

TEST(HierarchicalGroup, ARankThatLeavesIsNamed) {
  Meet end(3);
  RunOn({0, 0, 1, 1}, [&](HierarchicalGroup* group) {
    EXPECT_EQ(group->Barrier(), absl::OkStatus());
    if (group->rank() == 3) return;
    const absl::Status status = Sum(group, ReduceOp::kSum);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_TRUE(absl::StartsWith(status.message(), "rank 3 has left the group"))
        << status;
    end.Wait();
  });
}

TEST(RenameRanks, KeepsRootsAndUnknownRanks) {
  EXPECT_EQ(
      RenameRanks("rank 1 calls broadcast from rank 1, rank 0 ends", {4, 6}),
      "rank 6 calls broadcast from rank 1, rank 4 ends");
  EXPECT_EQ(RenameRanks("rank 2, rank , rank", {4, 6}), "rank 2, rank , rank");
}

}  // namespace
}  // namespace penstock::collectives
