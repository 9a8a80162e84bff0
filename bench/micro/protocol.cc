// Measures the stages of a session's bytes: outbox, reassembler and inbox. Also
// measures the ranges of an arena.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "benchmark/benchmark.h"
#include "transport/memory/range_allocator.h"
#include "transport/protocol/inbox.h"
#include "transport/protocol/outbox.h"
#include "transport/protocol/reassembler.h"
#include "transport/wire/frame.h"

namespace penstock {
namespace bench {
namespace {

wire::FrameHeader MessageHeader() {
  wire::FrameHeader header;
  header.type = wire::FrameType::kMessage;
  header.stream = 1;
  return header;
}

// Measures sending the three frames of a small request as one batch.
void OutboxBatch(benchmark::State& state) {
  base::BufferPool buffers;
  protocol::Outbox outbox(wire::kMaxFrameBytes, &buffers);
  const std::string payload(8, 'm');
  for (auto _ : state) {
    for (int i = 0; i < 3; ++i) outbox.Add(MessageHeader(), payload, 1);
    benchmark::DoNotOptimize(outbox.Pop());
  }
}
BENCHMARK(OutboxBatch);

// Measures reassembling a message from this number of fragments.
void Reassemble(benchmark::State& state) {
  const std::string part(1024, 'f');
  const absl::Span<const uint8_t> payload(
      reinterpret_cast<const uint8_t*>(part.data()), part.size());
  protocol::Reassembler reassembler;
  for (auto _ : state) {
    bool whole = false;
    for (int64_t left = state.range(0); left > 0; --left) {
      wire::FrameHeader header = MessageHeader();
      header.length = part.size();
      header.flags = left > 1 ? wire::kMoreFragments : 0;
      if (!reassembler.Accept(header, payload, &whole).ok()) break;
    }
    if (!whole) state.SkipWithError("not joined");
  }
}
BENCHMARK(Reassemble)->Arg(1)->Arg(8);

void InboxMessage(benchmark::State& state) {
  protocol::Inbox inbox;
  for (auto _ : state) {
    inbox.Add(protocol::Inbox::Kind::kMessage);
    protocol::Inbox::Item taken;
    if (!inbox.Take(&taken)) state.SkipWithError("nothing there");
    benchmark::DoNotOptimize(taken);
  }
}
BENCHMARK(InboxMessage);

// Measures the allocator of ranges. Frees the oldest of this number of ranges
// of mixed sizes, and allocates another.
void RangeAllocator(benchmark::State& state) {
  constexpr uint64_t kLengths[] = {1 << 20, 64 << 10, 4096, 300 << 10};
  memory::RangeAllocator allocator(uint64_t{1} << 30);
  std::vector<std::pair<uint64_t, uint64_t>> ranges(state.range(0));
  size_t next = 0;
  for (auto _ : state) {
    auto& range = ranges[next % ranges.size()];
    if (range.second != 0) allocator.Free(range.first, range.second);
    range.second = kLengths[next++ % 4];
    const auto offset = allocator.Allocate(range.second);
    if (!offset.has_value()) {
      state.SkipWithError("no room");
      break;
    }
    range.first = *offset;
  }
}
BENCHMARK(RangeAllocator)->Arg(1)->Arg(129);

}  // namespace
}  // namespace bench
}  // namespace penstock
