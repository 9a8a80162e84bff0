#include "bench/rpc/client/client.h"

namespace penstock {
namespace bench {

RunLoad ClientFor(Benchmark benchmark, Api api) {
  // True if the benchmark sends a stream. All other benchmarks make unary
  // calls.
  const bool stream =
      benchmark == Benchmark::kStream || benchmark == Benchmark::kResend;
  switch (api) {
    case Api::kSync:
      return stream ? RunStreamSync : RunEchoSync;
    case Api::kAsync:
      return stream ? RunStreamAsync : RunEchoAsync;
    case Api::kCallback:
      return stream ? RunStreamCallback : RunEchoCallback;
  }
  return nullptr;
}

}  // namespace bench
}  // namespace penstock
