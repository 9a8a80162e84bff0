// Measures collective operations on one host, in the form of OSU's
// micro-benchmarks: the latency of an operation by size, at rank 0.
//
// Forks one process for each rank. Prints a line of JSON for each operation and
// size. compare.py runs this program and torch's gloo alternately.

#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bench/rpc/report/statistics.h"
#include "collectives/host/group.h"
#include "collectives/host/meeting.h"
#include "collectives/reduction/reduction.h"
#include "collectives/schedule/plan.h"
#include "tensor_service/dtype.h"

namespace penstock::collectives {
namespace {

using Clock = std::chrono::steady_clock;
using tensor::DType;

// OSU's numbers of repetitions, with more time for sizes that take long.
constexpr int kSmallRounds = 2000;
constexpr int kFewestRounds = 10;
constexpr int64_t kBytesInAll = int64_t{512} << 20;

struct Options {
  int ranks = 2;
  std::vector<std::string> operations = {"all_reduce", "broadcast", "barrier"};
  std::vector<uint64_t> sizes = {8,       1 << 10, 64 << 10,
                                 1 << 20, 4 << 20, 64 << 20};
  uint64_t slot_bytes = HostGroupOptions().slot_bytes;
  int most_rounds = kSmallRounds;
  bool pool = false;
};

// The memory of an operation of some size.
class Buffers {
 public:
  // Takes the input from the group's pool if `pool` is true.
  static absl::StatusOr<Buffers> Make(HostGroup* group, int64_t elements,
                                      bool pool) {
    Buffers buffers;
    const int64_t size = elements * group->ranks();
    buffers.out_.resize(size, 1.0F);
    if (!pool) {
      buffers.own_.resize(size, 1.0F);
      return buffers;
    }
    auto memory = group->Allocate(size * sizeof(float));
    if (!memory.ok()) return memory.status();
    buffers.pool_ = *std::move(memory);
    std::fill_n(buffers.in(), size, 1.0F);
    return buffers;
  }

  float* in() {
    return pool_ == nullptr ? own_.data() : static_cast<float*>(pool_->data());
  }
  float* out() { return out_.data(); }

 private:
  std::vector<float> own_;
  std::vector<float> out_;
  std::unique_ptr<PoolMemory> pool_;
};

absl::Status Run(HostGroup* group, const std::string& operation, int64_t count,
                 Buffers* buffers) {
  constexpr DType kType = DType::kF32;
  float* const in = buffers->in();
  float* const out = buffers->out();
  if (operation == "all_reduce") {
    return group->AllReduce(ReduceOp::kMax, kType, in, in, count);
  }
  if (operation == "broadcast") {
    return group->Broadcast(kType, in, count, 0);
  }
  if (operation == "reduce_scatter") {
    return group->ReduceScatter(ReduceOp::kMax, kType, in, out, count);
  }
  if (operation == "all_gather") {
    return group->AllGather(kType, in, out, count);
  }
  if (operation == "all_to_all") {
    return group->AllToAll(kType, in, out, count);
  }
  return group->Barrier();
}

// Returns the microseconds of each repetition.
absl::StatusOr<std::vector<double>> Measure(HostGroup* group,
                                            const std::string& operation,
                                            uint64_t bytes,
                                            const Options& options) {
  const auto count = static_cast<int64_t>(bytes / sizeof(float));
  auto buffers =
      Buffers::Make(group, std::max<int64_t>(count, 1), options.pool);
  if (!buffers.ok()) return buffers.status();
  const int rounds = static_cast<int>(std::clamp<int64_t>(
      kBytesInAll / static_cast<int64_t>(std::max<uint64_t>(bytes, 1)),
      kFewestRounds, options.most_rounds));
  std::vector<double> times;
  for (int round = -rounds / 10; round < rounds; ++round) {
    const Clock::time_point begin = Clock::now();
    const absl::Status status = Run(group, operation, count, &*buffers);
    const Clock::time_point end = Clock::now();
    if (!status.ok()) return status;
    if (round < 0) continue;
    times.push_back(
        std::chrono::duration<double, std::micro>(end - begin).count());
  }
  return times;
}

absl::Status MeasureAll(HostGroup* group, const Options& options) {
  for (const std::string& operation : options.operations) {
    const std::vector<uint64_t> none = {0};
    for (const uint64_t bytes : operation == "barrier" ? none : options.sizes) {
      const auto times = Measure(group, operation, bytes, options);
      if (!times.ok()) return times.status();
      if (group->rank() != 0) continue;
      std::printf(
          "{\"library\": \"penstock\", \"operation\": \"%s\", \"ranks\": %d, "
          "\"bytes\": %llu, \"p50_us\": %.2f, \"p99_us\": %.2f, "
          "\"rounds\": %zu}\n",
          operation.c_str(), group->ranks(),
          static_cast<unsigned long long>(bytes), bench::Median(*times),
          bench::Percentile(*times, 99), times->size());
      std::fflush(stdout);
    }
  }
  return absl::OkStatus();
}

int Report(const absl::Status& status) {
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}

int RunRank(absl::StatusOr<std::unique_ptr<HostGroup>> group,
            const Options& options) {
  return Report(group.ok() ? MeasureAll(group->get(), options)
                           : group.status());
}

// Forks the other ranks, before this process has threads.
int RunAll(const Options& options) {
  HostGroupOptions group_options;
  group_options.ranks = options.ranks;
  group_options.slot_bytes = options.slot_bytes;
  if (options.pool) {
    const uint64_t largest =
        *std::max_element(options.sizes.begin(), options.sizes.end());
    group_options.pool_bytes =
        (largest / kMinSlotBytes + 1) * kMinSlotBytes * options.ranks;
  }
  auto meeting = Meeting::Open();
  if (!meeting.ok()) return Report(meeting.status());
  for (int rank = 1; rank < options.ranks; ++rank) {
    const pid_t child = fork();
    if (child < 0) return Report(absl::InternalError("fork failed"));
    if (child > 0) continue;
    return RunRank(HostGroup::Join(meeting->invitation(), rank, group_options),
                   options);
  }
  int result =
      RunRank(HostGroup::Lead(*std::move(meeting), group_options), options);
  int status = 0;
  while (wait(&status) > 0) result |= status == 0 ? 0 : 1;
  return result;
}

}  // namespace
}  // namespace penstock::collectives

int main(int argc, char** argv) {
  penstock::collectives::Options options;
  CLI::App app("Latency of collective operations by size, on one host.");
  app.add_option("--ranks", options.ranks, "Processes")
      ->check(CLI::Range(1, penstock::collectives::kMaxHostRanks));
  app.add_option("--operations", options.operations)
      ->delimiter(',')
      ->check(CLI::IsMember({"all_reduce", "broadcast", "reduce_scatter",
                             "all_gather", "all_to_all", "barrier"}));
  app.add_option("--sizes", options.sizes,
                 "Bytes of a rank's buffer, or of one of its blocks")
      ->delimiter(',')
      ->transform(CLI::AsSizeValue(false));
  app.add_option("--slot", options.slot_bytes, "Bytes of a slot")
      ->transform(CLI::AsSizeValue(false));
  app.add_flag("--pool", options.pool, "Input in memory that peers can read");
  app.add_option("--rounds", options.most_rounds, "Most repetitions")
      ->check(CLI::Range(penstock::collectives::kFewestRounds, 1'000'000));
  CLI11_PARSE(app, argc, argv);
  return penstock::collectives::RunAll(options);
}
