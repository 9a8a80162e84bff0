// Measures the shared memory fabric: packets through the ring, and payloads
// through the arena.

#include <cstring>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "bench/micro/shm_pair.h"
#include "benchmark/benchmark.h"
#include "transport/fabric/fabric.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace bench {
namespace {

class Counter : public fabric::EndpointEvents {
 public:
  void OnPacket(absl::Span<const uint8_t> packet) override { ++packets; }
  void OnWritable() override {}
  void OnReadDone(uint64_t, const absl::Status&) override {}
  void OnDoorbell() override {}
  void OnBroken(const absl::Status&) override {}

  int64_t packets = 0;
};

// Two connected and started endpoints. Reports an error in `state` if they
// cannot connect.
struct StartedPair {
  explicit StartedPair(benchmark::State* state) {
    absl::StatusOr<ShmPair> connected = ConnectShm();
    if (!connected.ok()) {
      state->SkipWithError(connected.status().ToString().c_str());
      return;
    }
    ends = *std::move(connected);
    ends.connecting->Start(&sender);
    ends.listening->Start(&receiver);
    ok = true;
  }

  Counter sender, receiver;  // must outlive the ends
  ShmPair ends;
  bool ok = false;
};

// Measures writing a packet to the ring and reading it, in one thread.
void RingPacket(benchmark::State& state) {
  StartedPair pair(&state);
  if (!pair.ok) return;
  const std::vector<uint8_t> packet(state.range(0), 'm');
  for (auto _ : state) {
    if (!pair.ends.connecting->Send(packet)) state.SkipWithError("no credit");
    pair.ends.listening->Poll();
  }
  if (pair.receiver.packets != state.iterations()) {
    state.SkipWithError("packets were lost");
  }
}
BENCHMARK(RingPacket)->Arg(8)->Arg(8192);

// Measures a payload: copied to the arena, read in place by the peer, and
// released.
void ArenaPayload(benchmark::State& state) {
  StartedPair pair(&state);
  if (!pair.ok) return;
  const memory::Block block = memory::AllocateBlock(state.range(0)).value();
  std::memset(block.data.get(), 'p', block.size);
  const memory::Payload payload(block.AsBytes());
  for (auto _ : state) {
    auto exposed = pair.ends.connecting->Expose(payload, /*max_parts=*/1);
    if (!exposed.ok()) {
      state.SkipWithError(exposed.status().ToString().c_str());
      break;
    }
    auto loaded = pair.ends.listening->Load(exposed->region);
    if (!loaded.ok()) {
      state.SkipWithError(loaded.status().ToString().c_str());
      break;
    }
    loaded = memory::Payload();
    pair.ends.connecting->Withdraw(exposed->region);
    pair.ends.connecting->Poll();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(ArenaPayload)->Arg(64 << 10)->Arg(1 << 20);

// Measures the copy of a payload alone, for comparison.
void Memcpy(benchmark::State& state) {
  const std::vector<uint8_t> from(state.range(0), 'p');
  std::vector<uint8_t> to(state.range(0));
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), from.size());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(Memcpy)->Arg(64 << 10)->Arg(1 << 20);

}  // namespace
}  // namespace bench
}  // namespace penstock
