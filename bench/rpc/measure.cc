#include "bench/rpc/measure.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "bench/rpc/client/client.h"
#include "bench/rpc/client/load.h"
#include "bench/rpc/client/replay.h"
#include "bench/rpc/client/watchdog.h"
#include "bench/rpc/setup/usage.h"

namespace penstock {
namespace bench {
namespace {

// The length of a burst that another thread stops. Longer than any burst,
// because an RPC has a deadline of ten seconds.
constexpr double kUntilStoppedSeconds = 24 * 3600;
// The ratio of the largest to the smallest warm-up RPC on a channel. A session
// needs different sizes for its own measurements.
constexpr double kWarmUpRatio = 32;
constexpr double kGoldenRatio = 0.6180339887;

LoadPlan PlanFor(const RunOptions& options, const Cell& cell) {
  LoadPlan plan;
  plan.bytes = cell.bytes;
  plan.seconds = options.seconds;
  plan.rpcs = options.rpcs;
  plan.threads = options.threads;
  plan.resend = cell.benchmark == Benchmark::kResend;
  plan.handover = cell.benchmark == Benchmark::kHandover;
  plan.push = cell.benchmark == Benchmark::kPush ||
              cell.benchmark == Benchmark::kServers;
  const bool has_window = plan.push ||
                          cell.benchmark == Benchmark::kBandwidth ||
                          cell.benchmark == Benchmark::kBeside;
  plan.window = has_window ? options.window : 1;
  return plan;
}

// Returns the plan of channel `index` of `count`: the plan with this channel's
// part of plan.rpcs.
LoadPlan PartOf(LoadPlan plan, size_t index, size_t count) {
  const bool has_one_more = index < plan.rpcs % count;
  plan.rpcs = plan.rpcs / count + (has_one_more ? 1 : 0);
  return plan;
}

LoadPlan WarmUp(LoadPlan plan) {
  plan.seconds /= kWarmUpPart;
  if (plan.rpcs > 0) plan.rpcs = std::max<int64_t>(plan.rpcs / kWarmUpPart, 1);
  return plan;
}

// Runs the burst on all channels concurrently, each with its own callers.
absl::StatusOr<LoadResult> RunBurst(const LoadPlan& plan, const Cell& cell,
                                    const ServerChannels& server,
                                    Watchdog* watchdog) {
  const auto& channels = server.channels();
  std::vector<std::unique_ptr<Load>> loads;
  std::vector<std::thread> threads;
  for (size_t i = 0; i < channels.size(); ++i) {
    const LoadPlan part = PartOf(plan, i, channels.size());
    if (plan.rpcs > 0 && part.rpcs == 0) break;
    loads.push_back(std::make_unique<Load>(part, watchdog));
    threads.emplace_back(ClientFor(cell.benchmark, cell.api),
                         std::cref(channels[i]), loads.back().get());
  }
  for (std::thread& thread : threads) thread.join();
  LoadResult all;
  for (const std::unique_ptr<Load>& load : loads) {
    const absl::StatusOr<LoadResult> result = load->Finish();
    if (!result.ok()) return result.status();
    all.seconds = std::max(all.seconds, result->seconds);
    all.latencies_us.insert(all.latencies_us.end(),
                            result->latencies_us.begin(),
                            result->latencies_us.end());
    all.reads_us.insert(all.reads_us.end(), result->reads_us.begin(),
                        result->reads_us.end());
  }
  return all;
}

// Measures tiny RPCs while the plan's RPCs run on the same channel, the first.
// The times are those of the tiny RPCs. The MB/s are those of the plan's RPCs.
absl::StatusOr<RoundResult> RunBeside(const LoadPlan& plan, const Cell& cell,
                                      const ServerChannels& server,
                                      Watchdog* watchdog) {
  const auto& channel = server.channels().front();
  const RunLoad run = ClientFor(cell.benchmark, cell.api);
  LoadPlan tiny_plan;
  tiny_plan.bytes = kMinPayload;
  tiny_plan.seconds = kUntilStoppedSeconds;
  Load load(plan, watchdog);
  Load tiny(tiny_plan, watchdog);
  std::thread thread(run, std::cref(channel), &tiny);
  run(channel, &load);
  const absl::StatusOr<LoadResult> others = load.Finish();
  tiny.Stop();
  thread.join();
  const absl::StatusOr<LoadResult> times = tiny.Finish();
  if (!others.ok() || !times.ok()) {
    return others.ok() ? times.status() : others.status();
  }
  RoundResult result = Summarize(cell, *times);
  result.mb_per_s = Summarize(cell, *others).mb_per_s;
  return result;
}

// Sleeps, and reports progress to the watchdog.
void Rest(double seconds, Watchdog* watchdog) {
  const absl::Time end = absl::Now() + absl::Seconds(seconds);
  while (absl::Now() < end) {
    absl::SleepFor(std::min(end - absl::Now(), absl::Seconds(1)));
    watchdog->Progress();
  }
}

// Calls on one channel after another, so that the callers need little memory.
absl::Status CallOnEach(LoadPlan plan, const Cell& cell,
                        const ServerChannels& server, Watchdog* watchdog) {
  plan.rpcs = 1;
  plan.threads = 1;
  for (const auto& channel : server.channels()) {
    Load load(plan, watchdog);
    ClientFor(cell.benchmark, cell.api)(channel, &load);
    const absl::Status status = load.Finish().status();
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// Makes one RPC of the cell's size on each channel, then stays idle. Measures
// the memory beyond that of the first channel.
absl::StatusOr<RoundResult> RunIdle(const RunOptions& options, const Cell& cell,
                                    const ServerChannels& server,
                                    Watchdog* watchdog) {
  const absl::Status called =
      CallOnEach(PlanFor(options, cell), cell, server, watchdog);
  if (!called.ok()) return called;
  // Wait until follow-up work is done and pollers sleep.
  Rest(options.seconds / kWarmUpPart, watchdog);
  const absl::StatusOr<Usage> before = server.CurrentUsage();
  Rest(options.seconds, watchdog);
  const absl::StatusOr<Usage> after = server.CurrentUsage();
  if (!before.ok() || !after.ok()) {
    return before.ok() ? after.status() : before.status();
  }
  RoundResult result;
  result.rpcs = options.channels;
  result.cpu_percent = (after->cpu_s - before->cpu_s) / options.seconds * 100;
  result.kib_per_channel =
      (after->memory_kib - server.usage_of_first().memory_kib) /
      (options.channels - 1);
  return result;
}

// Replays the recording once at maximal speed as a warm-up, then measures.
absl::StatusOr<RoundResult> RunReplay(const RunOptions& options,
                                      const ServerChannels& server,
                                      Watchdog* watchdog) {
  const Recording& recording = *options.recording;
  auto replayed = Replay(recording, server.channels(), kMaxSpeed, watchdog);
  const absl::StatusOr<Usage> before = server.CurrentUsage();
  const absl::StatusOr<double> cpu_before = server.CurrentCpuSeconds();
  if (replayed.ok()) {
    replayed = Replay(recording, server.channels(), options.speed, watchdog);
  }
  const absl::StatusOr<double> cpu_after = server.CurrentCpuSeconds();
  const absl::StatusOr<Usage> after = server.CurrentUsage();
  for (const absl::Status& status :
       {replayed.status(), before.status(), cpu_before.status(),
        cpu_after.status(), after.status()}) {
    if (!status.ok()) return status;
  }
  LoadResult load;
  load.latencies_us = std::move(replayed->latencies_us);
  Cell cell = {};
  RoundResult result = Summarize(cell, load);
  result.rpcs = static_cast<double>(recording.calls.size());
  result.seconds = replayed->seconds;
  result.mb_per_s =
      static_cast<double>(replayed->bytes) / replayed->seconds / 1e6;
  result.page_faults = (after->page_faults - before->page_faults) / result.rpcs;
  result.cpu_us = (*cpu_after - *cpu_before) / result.rpcs * 1e6;
  return result;
}

absl::StatusOr<RoundResult> WarmAndMeasure(const LoadPlan& plan,
                                           const Cell& cell,
                                           const ServerChannels& server,
                                           Watchdog* watchdog) {
  if (cell.benchmark == Benchmark::kBeside) {
    const auto warm = RunBeside(WarmUp(plan), cell, server, watchdog);
    if (!warm.ok()) return warm;
    return RunBeside(plan, cell, server, watchdog);
  }
  absl::StatusOr<LoadResult> load =
      RunBurst(WarmUp(plan), cell, server, watchdog);
  const absl::StatusOr<Usage> before = server.CurrentUsage();
  // Read the CPU time directly before and after the burst, because reading
  // other usage costs CPU time.
  const absl::StatusOr<double> cpu_before = server.CurrentCpuSeconds();
  if (load.ok()) load = RunBurst(plan, cell, server, watchdog);
  const absl::StatusOr<double> cpu_after = server.CurrentCpuSeconds();
  const absl::StatusOr<Usage> after = server.CurrentUsage();
  if (!load.ok()) return load.status();
  for (const absl::Status& status : {before.status(), cpu_before.status(),
                                     cpu_after.status(), after.status()}) {
    if (!status.ok()) return status;
  }
  RoundResult result = Summarize(cell, *load);
  result.page_faults = (after->page_faults - before->page_faults) / result.rpcs;
  result.cpu_us = (*cpu_after - *cpu_before) / result.rpcs * 1e6;
  return result;
}

}  // namespace

absl::Status WarmUpChannels(const RunOptions& options,
                            const ServerChannels& server, Watchdog* watchdog) {
  const std::vector<size_t> sizes = options.message_sizes();
  const double largest = *std::max_element(sizes.begin(), sizes.end());
  const double ratio = std::min(largest / kMinPayload, kWarmUpRatio);
  Cell cell{Benchmark::kLatency, options.transports.front(),
            options.apis.front(), 0};
  for (int i = 0; i < options.warm_up; ++i) {
    // The sizes are spread evenly over the powers of two. Small and large sizes
    // alternate.
    const double part = std::fmod(i * kGoldenRatio, 1);
    cell.bytes = static_cast<size_t>(largest / std::pow(ratio, part));
    const absl::Status status =
        CallOnEach(PlanFor(options, cell), cell, server, watchdog);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<RoundResult> MeasureCell(const RunOptions& options,
                                        const Cell& cell,
                                        const ServerChannels& server,
                                        Watchdog* watchdog) {
  watchdog->SetLabel(ToString(cell));
  if (cell.benchmark == Benchmark::kIdle) {
    auto result = RunIdle(options, cell, server, watchdog);
    const absl::Status path = server.CheckPaths();
    if (result.ok() && !path.ok()) return path;
    return result;
  }
  auto result =
      cell.benchmark == Benchmark::kReplay
          ? RunReplay(options, server, watchdog)
          : WarmAndMeasure(PlanFor(options, cell), cell, server, watchdog);
  if (!result.ok()) return result;
  // Check the path again. If the path changed during the burst, the times
  // belong to neither path.
  const absl::Status path = server.CheckPaths();
  if (!path.ok()) return path;
  for (const PathReport& report : DescribePaths(*server.channels().front())) {
    result->eager_max_bytes = report.eager_max_bytes;
    result->chunk_bytes = report.chunk_bytes;
  }
  return result;
}

}  // namespace bench
}  // namespace penstock
