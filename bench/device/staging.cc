// Simulates the speed of tensors between GPUs of two hosts through host memory.
// Shows which chunk sizes and numbers of slots suit a staged pipeline, and how
// much a call before a copy on a device adds. Needs no GPU: the figures are not
// those of a real GPU. See docs/method.md.
//
// Runs transport/device's own StagingPipeline. A stage processes one chunk at a
// time, which takes a fixed time plus the bytes at the stage's rate. This
// approximates a copy engine and a connection well.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <map>
#include <numeric>
#include <queue>
#include <vector>

#include "absl/strings/str_format.h"
#include "transport/device/slots.h"
#include "transport/device/staging_pipeline.h"

namespace penstock::device {
namespace {

struct Flags {
  double pcie_gb_per_s = 25;  // PCIe 4, 16 lanes
  // The rate of shm on the machine of docs/results.md.
  double transport_gb_per_s = 10;
  // The time to queue a copy, and to wake the thread that waits for its end.
  double copy_us = 8;
  double message_us = 10;  // per message of a stream
  double call_us = 60;     // per call over shm whose message is used in place
};

struct Stage {
  double us;         // microseconds per chunk
  double us_per_kb;  // microseconds per kilobyte

  double TimeOf(double bytes) const { return us + us_per_kb * bytes / 1e3; }
};

std::vector<Stage> StagesOf(const Flags& flags) {
  const Stage pcie = {flags.copy_us, 1 / flags.pcie_gb_per_s};
  return {pcie, {flags.message_us, 1 / flags.transport_gb_per_s}, pcie};
}

// The way in which a message is divided into chunks.
enum class Cut { kEqual, kAsTheCopierDoes };

std::vector<size_t> ChunksOf(size_t bytes, size_t chunk_bytes, Cut cut) {
  std::vector<size_t> chunks;
  while (bytes > 0) {
    const size_t wanted =
        cut == Cut::kEqual ? chunk_bytes
                           : NextLoadBytes(chunks.size(), bytes, chunk_bytes);
    chunks.push_back(std::min(bytes, wanted));
    bytes -= chunks.back();
  }
  return chunks;
}

// Returns the simulated microseconds of a transfer.
double Simulate(const std::vector<Stage>& stages,
                const std::vector<size_t>& chunks, int slots) {
  StagingPipeline::Shape shape;
  shape.chunks = chunks.size();
  shape.slots = slots;
  shape.stages = static_cast<int>(stages.size());
  StagingPipeline pipeline(shape);
  std::vector<double> free_at(stages.size());  // per stage
  std::multimap<double, int> ends;             // end times, with the stage
  double now = 0;
  const auto begin = [&](const StagingPipeline::Steps& steps) {
    for (const StagingPipeline::Step& step : steps) {
      double& at = free_at[step.stage];
      at = std::max(at, now) + stages[step.stage].TimeOf(chunks[step.chunk]);
      ends.emplace(at, step.stage);
    }
  };
  begin(pipeline.Start());
  while (!pipeline.finished()) {
    const auto next = ends.begin();
    now = next->first;
    const int stage = next->second;
    ends.erase(next);
    begin(pipeline.OnDone(stage));
  }
  return now;
}

constexpr size_t kKiB = 1024;
constexpr size_t kMiB = 1024 * kKiB;

// Returns the simulated rate as a percentage of the slower of PCIe and the
// transport.
double Share(const Flags& flags, const std::vector<size_t>& chunks, int slots) {
  const double slower = std::min(flags.pcie_gb_per_s, flags.transport_gb_per_s);
  const double bytes = std::accumulate(chunks.begin(), chunks.end(), 0.0);
  return 100 * (bytes / slower / 1e3) /
         Simulate(StagesOf(flags), chunks, slots);
}

void PrintTable(const Flags& flags, Cut cut, int slots) {
  const std::vector<size_t> chunk_sizes = {512 * kKiB, kMiB, 2 * kMiB,
                                           4 * kMiB};
  std::printf("\n%10s%8s", "message", "whole");
  for (size_t chunk : chunk_sizes) {
    std::printf("%9s", absl::StrFormat("%dKx%d", chunk / kKiB, slots).c_str());
  }
  std::printf("\n");
  for (size_t bytes : {kMiB, 4 * kMiB, 16 * kMiB, 64 * kMiB, 256 * kMiB}) {
    std::printf("%7zu MiB%8.0f", bytes / kMiB, Share(flags, {bytes}, 1));
    for (size_t chunk : chunk_sizes) {
      std::printf("%9.0f", Share(flags, ChunksOf(bytes, chunk, cut), slots));
    }
    std::printf("\n");
  }
}

void Print(const Flags& flags) {
  std::printf(
      "Simulated, and assumed: PCIe %.0f GB/s each way, transport %.0f GB/s;\n"
      "a chunk costs %.0f us at each device and %.0f us on the way.\n"
      "Percent of the rate of the slower of the two, by message, chunk and "
      "slots:\n",
      flags.pcie_gb_per_s, flags.transport_gb_per_s, flags.copy_us,
      flags.message_us);
  for (int slots : {2, 4}) {
    std::printf("\nChunks of one size:");
    PrintTable(flags, Cut::kEqual, slots);
    std::printf("\nThe first chunks grow to that, the last ones shrink:");
    PrintTable(flags, Cut::kAsTheCopierDoes, slots);
  }
}

// Prints the times of transfers by CUDA IPC. A transfer is a call, and then the
// receiver's copy. The copies are not pipelined.
void PrintInPlace(const Flags& flags) {
  // The memory bandwidths of L4, A100 and H100, roughly.
  const std::vector<double> rates = {300, 1500, 2500};
  std::printf(
      "\nIn place, between processes of one host: a call of %.0f us, and a "
      "copy on the device of %.0f us and its bytes.\n"
      "Percent of the rate of the copy alone, by its GB/s:\n\n%12s",
      flags.call_us, flags.copy_us, "message");
  for (double rate : rates) std::printf("%9.0f", rate);
  std::printf("\n");
  for (size_t bytes : {16 * kMiB, 64 * kMiB, 256 * kMiB, 1024 * kMiB}) {
    std::printf("%8zu MiB", bytes / kMiB);
    for (double rate : rates) {
      const double copy_us = flags.copy_us + bytes / rate / 1e3;
      std::printf("%9.0f", 100 * copy_us / (copy_us + flags.call_us));
    }
    std::printf("\n");
  }
}

}  // namespace
}  // namespace penstock::device

int main(int argc, char** argv) {
  penstock::device::Flags flags;
  CLI::App app("Simulates tensors on their way from GPU to GPU by the hosts.");
  const auto positive = CLI::Range(0.001, 1e6);
  app.add_option("--pcie", flags.pcie_gb_per_s, "GB/s of a device's copies")
      ->check(positive)
      ->capture_default_str();
  app.add_option("--transport", flags.transport_gb_per_s, "GB/s between hosts")
      ->check(positive)
      ->capture_default_str();
  app.add_option("--copy-us", flags.copy_us, "microseconds of each copy")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  app.add_option("--message-us", flags.message_us,
                 "microseconds of each message")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  app.add_option("--call-us", flags.call_us,
                 "microseconds of a call over shared memory")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  penstock::device::Print(flags);
  penstock::device::PrintInPlace(flags);
}
