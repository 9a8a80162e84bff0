// Measures the part of an RPC's cost that is between gRPC and the fabric.

#include <cstdint>

#include "bench/micro/session_pair.h"
#include "benchmark/benchmark.h"

namespace penstock {
namespace bench {
namespace {

// Measures a message of 8 bytes in one direction, on an existing stream.
void SessionMessage(benchmark::State& state) {
  SessionPair pair;
  if (!pair.status().ok()) {
    return state.SkipWithError(pair.status().ToString().c_str());
  }
  pair.client.OpenStream(1);
  for (auto _ : state) {
    pair.client.SendMessage();
    pair.client->Flush();
    pair.Move();
  }
  if (pair.server.messages != state.iterations()) {
    state.SkipWithError("messages were lost");
  }
}
BENCHMARK(SessionMessage);

// Measures a unary call with messages of 8 bytes in both directions, at client
// and server together. Six frames are sent.
void SessionCall(benchmark::State& state) {
  SessionPair pair;
  if (!pair.status().ok()) {
    return state.SkipWithError(pair.status().ToString().c_str());
  }
  uint32_t stream = 0;
  for (auto _ : state) {
    pair.client.OpenStream(++stream);
    pair.client.SendMessage();
    pair.client.HalfClose();
    pair.client->Flush();
    pair.Move();
  }
  if (pair.client.ended != state.iterations()) {
    state.SkipWithError("calls were lost");
  }
}
BENCHMARK(SessionCall);

}  // namespace
}  // namespace bench
}  // namespace penstock
