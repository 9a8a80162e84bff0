// Measures the benefit of huge pages for payloads in shared memory. The first
// argument is the requested kind: 0 ordinary pages, 1 transparent huge pages, 2
// reserved huge pages. The label is the kind that the kernel provided. See
// docs/method.md.

#include "transport/fabric/shm/huge_pages.h"

#include <fcntl.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "transport/base/unique_fd.h"
#include "transport/fabric/shm/segment.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace bench {
namespace {

using fabric::shm::HugePages;
using fabric::shm::PeerSegment;
using fabric::shm::Segment;

constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kSegmentBytes = 16 * kMiB;  // the arena's minimum

// Returns the kind of pages of the mapping at `data`, from /proc/self/smaps.
const char* PagesAt(const void* data) {
  const std::string begin =
      absl::StrCat(absl::Hex(reinterpret_cast<uintptr_t>(data)), "-");
  std::ifstream file("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    inside = inside || absl::StartsWith(line, begin);
    if (!inside || absl::StrContains(line, " 0 kB")) continue;
    if (absl::StartsWith(line, "ShmemPmdMapped:")) return "transparent";
    if (absl::StrContains(line, "_Hugetlb:")) return "reserved";
    if (absl::StartsWith(line, "VmFlags:")) break;
  }
  return "ordinary";
}

// Returns the sum of all bytes. Adds to four independent sums, like bench/rpc
// when it reads messages.
uint64_t Sum(const uint8_t* data, int64_t size) {
  const auto* words = reinterpret_cast<const uint64_t*>(data);
  uint64_t sums[4] = {};
  for (int64_t i = 0; i + 4 <= size / 8; i += 4) {
    for (int lane = 0; lane < 4; ++lane) sums[lane] += words[i + lane];
  }
  return sums[0] + sums[1] + sums[2] + sums[3];
}

// One segment of shared memory, mapped twice: by its owner and by a reader.
struct BothSides {
  // Maps a segment in the same way as the arena. Uses other pages if no pages
  // are reserved.
  static absl::StatusOr<BothSides> Map(int64_t pages, int64_t payload) {
    const int64_t size = std::max(payload, kSegmentBytes);
    constexpr HugePages kAll[] = {HugePages::kOff, HugePages::kTransparent,
                                  HugePages::kReserved};
    auto own = Segment::Create("bench", size, kAll[pages]);
    if (!own.ok()) {
      own = Segment::Create("bench", size, HugePages::kTransparent);
    }
    if (!own.ok()) return own.status();
    auto peer = PeerSegment::Map(
        base::UniqueFd(fcntl(own->fd(), F_DUPFD_CLOEXEC, 0)), own->size());
    if (!peer.ok()) return peer.status();
    return BothSides{*std::move(own), *std::move(peer)};
  }

  Segment own;
  PeerSegment peer;
};

// Measures a message that is copied into memory that was used before, and that
// the peer then reads.
void CopiedAndReadInPages(benchmark::State& state) {
  const int64_t size = state.range(1);
  auto sides = BothSides::Map(state.range(0), size);
  if (!sides.ok()) {
    return state.SkipWithError(sides.status().ToString().c_str());
  }
  const memory::Block from = memory::AllocateBlock(size).value();
  std::memset(from.data.get(), 'p', size);
  for (auto _ : state) {
    std::memcpy(sides->own.data(), from.data.get(), size);
    benchmark::DoNotOptimize(Sum(sides->peer.data(), size));
  }
  state.SetLabel(PagesAt(sides->peer.data()));
  state.SetBytesProcessed(state.iterations() * size);
}
BENCHMARK(CopiedAndReadInPages)->ArgsProduct({{0, 1, 2}, {kMiB, 64 * kMiB}});

// Measures the first message in a segment. Includes making, passing and
// checking the segment, and the first page faults on both sides.
void FirstCopiedAndReadInPages(benchmark::State& state) {
  const int64_t size = state.range(1);
  const memory::Block from = memory::AllocateBlock(size).value();
  std::memset(from.data.get(), 'p', size);
  for (auto _ : state) {
    auto sides = BothSides::Map(state.range(0), size);
    if (!sides.ok()) {
      state.SkipWithError(sides.status().ToString().c_str());
      break;
    }
    std::memcpy(sides->own.data(), from.data.get(), size);
    benchmark::DoNotOptimize(Sum(sides->peer.data(), size));
    state.PauseTiming();
    state.SetLabel(PagesAt(sides->peer.data()));
    sides = absl::CancelledError("unmapped without being timed");
    state.ResumeTiming();
  }
  state.SetBytesProcessed(state.iterations() * size);
}
BENCHMARK(FirstCopiedAndReadInPages)->ArgsProduct({{0, 1, 2}, {64 * kMiB}});

}  // namespace
}  // namespace bench
}  // namespace penstock
