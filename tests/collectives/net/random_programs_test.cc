// Runs random programs of operations, and compares each result bit by bit with
// plain loops in the order of the chosen schedule.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "collectives/net/group.h"
#include "collectives/reduction/reduction.h"
#include "collectives/schedule/choice.h"
#include "collectives/schedule/plan.h"
#include "gtest/gtest.h"
#include "tensor_service/dtype.h"
#include "tests/collectives/net/ranks.h"
#include "tests/collectives/net/reference.h"
#include "tests/ps/optim/random_values.h"

namespace penstock::collectives {
namespace {

using tensor::DType;
using Bytes = std::vector<uint8_t>;
using Random = std::mt19937_64;

constexpr DType kTypes[] = {
    DType::kF32,   DType::kF64,   DType::kF16,   DType::kBF16,  DType::kInt8,
    DType::kInt16, DType::kInt32, DType::kInt64, DType::kUint8, DType::kBool};

// Returns a random number in [0, most], log-uniform.
int64_t Draw(Random* random, int64_t most) {
  const double exponent = std::uniform_real_distribution<double>(
      0, std::log2(static_cast<double>(most) + 2))(*random);
  return std::min(most, static_cast<int64_t>(std::exp2(exponent)) - 1);
}

// Returns a random element: of magnitude 1 to 2 if it is a floating-point
// number, so that each order of a sum is rounded differently.
uint64_t RandomElement(DType dtype, Random* random) {
  const uint64_t bits = (*random)();
  switch (dtype) {
    case DType::kF64:
      return (bits & 0x800FFFFFFFFFFFFF) | 0x3FF0000000000000;
    case DType::kF32:
      return (bits & 0x807FFFFF) | 0x3F800000;
    case DType::kF16:
      return (bits & 0x83FF) | 0x3C00;
    case DType::kBF16:
      return (bits & 0x807F) | 0x3F80;
    case DType::kBool:
      return bits & 1;
    default:
      return bits;
  }
}

// One operation, with equal arguments on all ranks. The fields are public for
// the class Step.
struct Operands {
  Operands(uint64_t seed, int ranks) : random(seed) {
    operation = static_cast<Operation>(random() % 8);
    dtype = kTypes[random() % std::size(kTypes)];
    size = tensor::ElementSize(dtype);
    do {
      op = static_cast<ReduceOp>(random() % 8);
    } while (!CheckReduction(op, dtype).ok());
    root = static_cast<int>(random() % ranks);
    const bool has_blocks =
        operation == Operation::kReduceScatter ||
        operation == Operation::kAllGather || operation == Operation::kGather ||
        operation == Operation::kScatter || operation == Operation::kAllToAll;
    count = Draw(&random, has_blocks ? 60'000 : 200'000);
    all = has_blocks ? count * ranks : count;
    for (int rank = 0; rank < ranks; ++rank) {
      Bytes bytes(all * size);
      for (int64_t i = 0; i < all; ++i) {
        const uint64_t element = RandomElement(dtype, &random);
        std::memcpy(&bytes[i * size], &element, size);
      }
      buffers.push_back(bytes);
    }
  }

  std::string Text() const {
    return absl::StrCat(Name(operation), " (", Name(op), ") of ", count, " ",
                        tensor::Name(dtype), " with root ", root);
  }

  Random random;
  Operation operation;
  DType dtype;
  size_t size;
  ReduceOp op;
  int root;
  int64_t count;
  int64_t all;     // elements of the schedule's buffer
  Memory buffers;  // buffers of all ranks
};

// Returns the block of the buffer that belongs to this rank.
Bytes BlockOf(const Operands& operands, const Bytes& buffer, int rank) {
  const auto bytes = static_cast<int64_t>(operands.count * operands.size);
  return Bytes(buffer.begin() + rank * bytes,
               buffer.begin() + (rank + 1) * bytes);
}

// Runs the operation on `group`. Returns this rank's result, or no bytes if the
// rank gets none.
absl::StatusOr<Bytes> Call(const Operands& operands, NetGroup* group) {
  const int rank = group->rank();
  const bool is_root = rank == operands.root;
  const DType dtype = operands.dtype;
  const int64_t count = operands.count;
  const Bytes& buffer = operands.buffers[rank];
  const Bytes block =
      operands.all == count ? buffer : BlockOf(operands, buffer, rank);
  Bytes out(buffer.size(), 77);
  absl::Status status;
  switch (operands.operation) {
    case Operation::kAllReduce:
      out = buffer;
      status =
          group->AllReduce(operands.op, dtype, out.data(), out.data(), count);
      break;
    case Operation::kReduce:
      status = group->Reduce(operands.op, dtype, buffer.data(), out.data(),
                             count, operands.root);
      if (!is_root) out.clear();
      break;
    case Operation::kReduceScatter:
      out.resize(count * operands.size);
      status = group->ReduceScatter(operands.op, dtype, buffer.data(),
                                    out.data(), count);
      break;
    case Operation::kAllGather:
      status = group->AllGather(dtype, block.data(), out.data(), count);
      break;
    case Operation::kGather:
      status =
          group->Gather(dtype, block.data(), out.data(), count, operands.root);
      if (!is_root) out.clear();
      break;
    case Operation::kScatter:
      out.resize(count * operands.size);
      status = group->Scatter(dtype, buffer.data(), out.data(), count,
                              operands.root);
      break;
    case Operation::kBroadcast:
      out = buffer;
      status = group->Broadcast(dtype, out.data(), count, operands.root);
      break;
    default:
      status = group->AllToAll(dtype, buffer.data(), out.data(), count);
  }
  if (!status.ok()) return status;
  return out;
}

// Returns the results of all ranks, in the documented order.
Memory Expected(const Operands& operands, const std::vector<int>& hosts,
                const NetGroupOptions& options) {
  const auto ranks = static_cast<int>(hosts.size());
  Question question;
  question.operation = operands.operation;
  question.root = operands.root;
  question.count = operands.all;
  question.element_size = static_cast<int64_t>(operands.size);
  question.hosts = hosts;
  question.inside_host = options.inside_host;
  question.between_hosts = options.between_hosts;
  const auto choice = Choose(question, *ParseOverrides(options.algorithms));
  EXPECT_TRUE(choice.ok()) << choice.status();
  Memory data = operands.buffers;
  RunInMemory(choice->chosen.plan, operands.dtype, operands.op,
              operands.buffers, &data);
  const bool has_block = operands.operation == Operation::kReduceScatter ||
                         operands.operation == Operation::kScatter;
  const bool at_root = operands.operation == Operation::kReduce ||
                       operands.operation == Operation::kGather;
  const bool reduces = operands.operation == Operation::kAllReduce ||
                       operands.operation == Operation::kReduce ||
                       operands.operation == Operation::kReduceScatter;
  for (int rank = 0; rank < ranks; ++rank) {
    Bytes& result = data[rank];
    if (has_block) result = BlockOf(operands, result, rank);
    if (at_root && rank != operands.root) result.clear();
    if (reduces && operands.op == ReduceOp::kAverage) {
      Divide(operands.dtype, result.data(), ranks,
             result.size() / operands.size);
    }
  }
  return data;
}

TEST(RandomPrograms, GiveTheResultsOfPlainLoops) {
  Random random(ps::optim::NewSeed());
  const std::string algorithms[] = {"",
                                    "",
                                    "all_reduce=ring,broadcast=chain",
                                    "all_reduce=recursive-doubling",
                                    "all_reduce=hierarchical,reduce=chain",
                                    "all_gather=ring,reduce_scatter=ring,"
                                    "broadcast=scatter-and-all-gather"};
  for (int program = 0; program < 8 && !testing::Test::HasFailure();
       ++program) {
    const int ranks = 1 + static_cast<int>(random() % 5);
    NetGroupOptions options;
    options.algorithms = algorithms[random() % std::size(algorithms)];
    Team team;
    std::vector<int> hosts;
    for (int rank = 0; rank < ranks; ++rank) {
      ListenerOptions listener = program % 2 == 0
                                     ? Over({Fabric::kTcp})
                                     : Over({Fabric::kShm, Fabric::kTcp});
      hosts.push_back(static_cast<int>(random() % 2));
      listener.neighbourhood = absl::StrCat("host", hosts.back());
      Team one = OpenTeam(1, listener);
      team.listeners.push_back(std::move(one.listeners[0]));
      team.addresses.push_back(one.addresses[0]);
    }
    const uint64_t seed = random();
    constexpr int kSteps = 10;
    std::vector<Operands> steps;
    std::vector<Memory> expected;
    for (int step = 0; step < kSteps; ++step) {
      steps.emplace_back(seed + step, ranks);
      expected.push_back(Expected(steps.back(), hosts, options));
    }
    RunRanks(std::move(team), options, [&](NetGroup* group) {
      for (int step = 0; step < kSteps; ++step) {
        const auto result = Call(steps[step], group);
        ASSERT_TRUE(result.ok()) << steps[step].Text() << result.status();
        ASSERT_TRUE(*result == expected[step][group->rank()])
            << steps[step].Text() << " at rank " << group->rank() << "\n"
            << group->Describe();
      }
    });
  }
}

}  // namespace
}  // namespace penstock::collectives
