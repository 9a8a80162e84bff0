// Measures collective operations between processes of one host, as OSU's
// micro-benchmarks do: the latency of an operation by size, at rank 0. With
// --transport, the ranks form a group like ranks of several hosts.
//
// Forks one process for each rank. Prints a line of JSON for each operation and
// size. compare.py runs this program and torch's gloo alternately.

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bench/rpc/report/statistics.h"
#include "collectives/group.h"
#include "collectives/host/group.h"
#include "collectives/host/meeting.h"
#include "collectives/net/group.h"
#include "collectives/net/listener.h"
#include "collectives/reduction/reduction.h"
#include "collectives/schedule/plan.h"
#include "tensor_service/dtype.h"
#include "transport/progress/spin_policy.h"

namespace penstock::collectives {
namespace {

using Clock = std::chrono::steady_clock;
using tensor::DType;

// The numbers of repetitions: OSU's numbers, but with more time for large
// messages.
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
  // Write the input before each repetition. Otherwise the caches of a peer may
  // keep an input that never changes.
  bool fresh = false;
  // "host" measures a HostGroup. Any other value is the fabric of a NetGroup.
  std::string transport = "host";
  // The --algorithms of a NetGroup.
  std::string algorithms;
  // How the threads of a NetGroup wait: "adaptive", "busy" or "event".
  std::string polling = "adaptive";
  bool describe = false;
};

// The input and the output of one operation.
class Buffers {
 public:
  // Allocates the input in the pool of `pool`, or on the heap if `pool` is
  // null.
  static absl::StatusOr<Buffers> Make(int64_t size, HostGroup* pool) {
    Buffers buffers;
    buffers.out_.resize(size, 1.0F);
    if (pool == nullptr) {
      buffers.own_.resize(size, 1.0F);
      return buffers;
    }
    auto memory = pool->Allocate(size * sizeof(float));
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

absl::Status Run(Group* group, const std::string& operation, int64_t count,
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
  if (operation == "reduce") {
    return group->Reduce(ReduceOp::kMax, kType, in, out, count, 0);
  }
  if (operation == "gather") return group->Gather(kType, in, out, count, 0);
  if (operation == "scatter") return group->Scatter(kType, in, out, count, 0);
  return group->Barrier();
}

// Returns the number of elements of the input.
int64_t InputCount(const std::string& operation, int64_t count, int ranks) {
  const bool has_blocks = operation == "reduce_scatter" ||
                          operation == "all_to_all" || operation == "scatter";
  return has_blocks ? count * ranks : count;
}

// Returns the microseconds of each repetition.
absl::StatusOr<std::vector<double>> Measure(Group* group, HostGroup* pool,
                                            const std::string& operation,
                                            uint64_t bytes,
                                            const Options& options) {
  const auto count = static_cast<int64_t>(bytes / sizeof(float));
  auto buffers =
      Buffers::Make(std::max<int64_t>(count, 1) * group->ranks(), pool);
  if (!buffers.ok()) return buffers.status();
  const int rounds = static_cast<int>(std::clamp<int64_t>(
      kBytesInAll / static_cast<int64_t>(std::max<uint64_t>(bytes, 1)),
      kFewestRounds, options.most_rounds));
  std::vector<double> times;
  for (int round = -rounds / 10; round < rounds; ++round) {
    if (options.fresh) {
      std::fill_n(buffers->in(), InputCount(operation, count, group->ranks()),
                  static_cast<float>(round));
      const absl::Status written = group->Barrier();
      if (!written.ok()) return written;
    }
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

// Measures all operations and sizes. The input is in the pool of `pool`, or on
// the heap if `pool` is null.
absl::Status MeasureAll(Group* group, HostGroup* pool, const Options& options) {
  for (const std::string& operation : options.operations) {
    const std::vector<uint64_t> none = {0};
    for (const uint64_t bytes : operation == "barrier" ? none : options.sizes) {
      const auto times = Measure(group, pool, operation, bytes, options);
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
  if (options.describe && group->rank() == 0) {
    std::fprintf(stderr, "%s\n", group->Describe().c_str());
  }
  return absl::OkStatus();
}

int Report(const absl::Status& status) {
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}

// Runs `run` once for each rank, in separate processes. Rank 0 runs in this
// process, which has no threads yet.
int ForEachRank(int ranks, const std::function<int(int rank)>& run) {
  for (int rank = 1; rank < ranks; ++rank) {
    const pid_t child = fork();
    if (child < 0) return Report(absl::InternalError("fork failed"));
    if (child == 0) return run(rank);
  }
  int result = run(0);
  int status = 0;
  while (wait(&status) > 0) result |= status == 0 ? 0 : 1;
  return result;
}

int RunOnHost(const Options& options) {
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
  return ForEachRank(options.ranks, [&](int rank) {
    auto group =
        rank == 0 ? HostGroup::Lead(*std::move(meeting), group_options)
                  : HostGroup::Join(meeting->invitation(), rank, group_options);
    if (!group.ok()) return Report(group.status());
    return Report(MeasureAll(group->get(),
                             options.pool ? group->get() : nullptr, options));
  });
}

// The addresses of the ranks, in memory that all processes share.
struct Board {
  static constexpr size_t kTextBytes = 512;
  std::atomic<int> written{0};
  char texts[kMaxHostRanks][kTextBytes];
};

absl::Status RunOverNet(const Options& options, int rank, Board* board) {
  ListenerOptions listener_options;
  listener_options.settings.fabrics = {Fabric::kTcp};
  if (options.transport == "shm") {
    listener_options.settings.fabrics = {Fabric::kShm};
  } else if (options.transport == "verbs") {
    listener_options.settings.fabrics = {Fabric::kVerbs};
  }
  listener_options.polling =
      options.polling == "event"  ? progress::PollingMode::kEvent
      : options.polling == "busy" ? progress::PollingMode::kBusy
                                  : progress::PollingMode::kAdaptive;
  auto listener = Listener::Open(listener_options);
  if (!listener.ok()) return listener.status();
  std::snprintf(board->texts[rank], Board::kTextBytes, "%s",
                (*listener)->address().c_str());
  board->written.fetch_add(1);
  while (board->written.load() < options.ranks) usleep(1000);
  const std::vector<std::string> addresses(board->texts,
                                           board->texts + options.ranks);
  NetGroupOptions group_options;
  group_options.rank = rank;
  group_options.algorithms = options.algorithms;
  auto group = NetGroup::Form(*std::move(listener), addresses, group_options);
  if (!group.ok()) return group.status();
  return MeasureAll(group->get(), nullptr, options);
}

int RunAll(const Options& options) {
  if (options.transport == "host") return RunOnHost(options);
  void* const memory = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return Report(absl::InternalError("mmap failed"));
  auto* const board = new (memory) Board;
  return ForEachRank(options.ranks, [&](int rank) {
    return Report(RunOverNet(options, rank, board));
  });
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
      ->check(CLI::IsMember({"all_reduce", "broadcast", "reduce",
                             "reduce_scatter", "all_gather", "gather",
                             "scatter", "all_to_all", "barrier"}));
  app.add_option("--sizes", options.sizes,
                 "Bytes of a rank's buffer, or of one of its blocks")
      ->delimiter(',')
      ->transform(CLI::AsSizeValue(false));
  app.add_option("--slot", options.slot_bytes, "Bytes of a slot")
      ->transform(CLI::AsSizeValue(false));
  app.add_option("--transport", options.transport,
                 "host: shared memory of one host. Others: a group as between "
                 "hosts, over this fabric")
      ->check(CLI::IsMember({"host", "shm", "verbs", "tcp"}));
  app.add_option("--algorithms", options.algorithms,
                 "Such as all_reduce=ring, of a group as between hosts");
  app.add_option("--polling", options.polling,
                 "How threads wait in a group as between hosts")
      ->check(CLI::IsMember({"adaptive", "busy", "event"}));
  app.add_flag("--describe", options.describe,
               "Print paths and algorithms to stderr");
  app.add_flag("--pool", options.pool, "Input in memory that peers can read");
  app.add_flag("--fresh", options.fresh,
               "Write the input before each repetition");
  app.add_option("--rounds", options.most_rounds, "Most repetitions")
      ->check(CLI::Range(penstock::collectives::kFewestRounds, 1'000'000));
  CLI11_PARSE(app, argc, argv);
  return penstock::collectives::RunAll(options);
}
