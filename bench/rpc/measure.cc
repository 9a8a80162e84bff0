#include "bench/rpc/measure.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "bench/rpc/client.h"
#include "bench/rpc/load.h"
#include "bench/rpc/usage.h"
#include "bench/rpc/watchdog.h"

namespace penstock {
namespace bench {
namespace {

// A fifth of a burst goes unmeasured before it: enough for gRPC to have its
// threads and its windows, and for a fresh heap to have grown.
constexpr int kWarmUpPart = 5;

LoadPlan PlanFor(const RunOptions& options, const Cell& cell) {
  LoadPlan plan;
  plan.bytes = cell.bytes;
  plan.seconds = options.seconds;
  plan.rpcs = options.rpcs;
  plan.threads = options.threads;
  plan.resend = cell.benchmark == Benchmark::kResend;
  plan.handover = cell.benchmark == Benchmark::kHandover;
  plan.window = cell.benchmark == Benchmark::kBandwidth ? options.window : 1;
  return plan;
}

// What channel `index` of `count` does of it.
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

// The burst on all channels at once, each with its own callers.
absl::StatusOr<LoadResult> RunBurst(const LoadPlan& plan, const Cell& cell,
                                    const Connection& connection,
                                    Watchdog* watchdog) {
  const auto& channels = connection.channels();
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

// Sleeps, and lives.
void Rest(double seconds, Watchdog* watchdog) {
  const absl::Time end = absl::Now() + absl::Seconds(seconds);
  while (absl::Now() < end) {
    absl::SleepFor(std::min(end - absl::Now(), absl::Seconds(1)));
    watchdog->Progress();
  }
}

// One after another, so that the callers' own memory stays small.
absl::Status CallOnEach(LoadPlan plan, const Cell& cell,
                        const Connection& connection, Watchdog* watchdog) {
  plan.rpcs = 1;
  plan.threads = 1;
  for (const auto& channel : connection.channels()) {
    Load load(plan, watchdog);
    ClientFor(cell.benchmark, cell.api)(channel, &load);
    const absl::Status status = load.Finish().status();
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// One RPC of the cell's size on each channel, then nothing. The difference in
// memory is to when there was only one channel.
absl::StatusOr<RoundResult> RunIdle(const RunOptions& options, const Cell& cell,
                                    const Connection& connection,
                                    Watchdog* watchdog) {
  const absl::Status called =
      CallOnEach(PlanFor(options, cell), cell, connection, watchdog);
  if (!called.ok()) return called;
  // What had to be done after them is done, and pollers have gone to sleep.
  Rest(options.seconds / kWarmUpPart, watchdog);
  const absl::StatusOr<Usage> before = connection.CurrentUsage();
  Rest(options.seconds, watchdog);
  const absl::StatusOr<Usage> after = connection.CurrentUsage();
  if (!before.ok() || !after.ok()) {
    return before.ok() ? after.status() : before.status();
  }
  RoundResult result;
  result.rpcs = options.channels;
  result.cpu_percent = (after->cpu_s - before->cpu_s) / options.seconds * 100;
  result.kib_per_channel =
      (after->memory_kib - connection.usage_of_first().memory_kib) /
      (options.channels - 1);
  return result;
}

}  // namespace

absl::StatusOr<RoundResult> MeasureCell(const RunOptions& options,
                                        const Cell& cell,
                                        const Connection& connection,
                                        Watchdog* watchdog) {
  watchdog->SetLabel(ToString(cell));
  if (cell.benchmark == Benchmark::kIdle) {
    auto result = RunIdle(options, cell, connection, watchdog);
    const absl::Status path = connection.CheckPaths();
    if (result.ok() && !path.ok()) return path;
    return result;
  }
  const LoadPlan plan = PlanFor(options, cell);
  absl::StatusOr<LoadResult> result =
      RunBurst(WarmUp(plan), cell, connection, watchdog);
  if (result.ok()) result = RunBurst(plan, cell, connection, watchdog);
  if (!result.ok()) return result.status();
  // The path may have changed under the burst; then its times belong to
  // neither.
  const absl::Status path = connection.CheckPaths();
  if (!path.ok()) return path;
  return Summarize(cell, *result);
}

}  // namespace bench
}  // namespace penstock
