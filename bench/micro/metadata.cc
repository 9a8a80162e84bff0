// Measures the encoding and decoding of a unary call's metadata.

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "benchmark/benchmark.h"
#include "transport/grpc/metadata_codec.h"

namespace penstock {
namespace bench {
namespace {

// Returns a memory allocator for batches, like the one of a gRPC call.
grpc_core::MemoryAllocator* Allocator() {
  static auto* quota = new std::shared_ptr<grpc_core::MemoryQuota>(
      new grpc_core::MemoryQuota("bench"));
  static auto* allocator =
      new grpc_core::MemoryAllocator((*quota)->CreateMemoryAllocator("bench"));
  return allocator;
}

struct Batch {
  grpc_core::ScopedArenaPtr arena =
      grpc_core::MakeScopedArena(1024, Allocator());
  grpc_metadata_batch batch{arena.get()};

  void Add(absl::string_view key, const char* value) {
    batch.Append(key, grpc_core::Slice::FromStaticString(value),
                 [](absl::string_view, const grpc_core::Slice&) {});
  }
};

// Adds the metadata that gRPC's C++ client sends with a call.
void FillRequest(Batch* batch) {
  batch->Add(":path", "/penstock.bench.Rpc/Echo");
  batch->Add(":authority", "127.0.0.1:12345");
  batch->Add(":method", "POST");
  batch->Add(":scheme", "http");
  batch->Add("te", "trailers");
  batch->Add("content-type", "application/grpc");
  batch->Add("user-agent", "grpc-c++/1.51.1 grpc-c/29.0.0 (linux; chttp2)");
  batch->Add("grpc-accept-encoding", "identity, deflate, gzip");
}

void EncodeRequestMetadata(benchmark::State& state) {
  grpc_core::ExecCtx context;
  Batch request;
  FillRequest(&request);
  std::string bytes;
  core::SentEntries sent;
  const auto tell = [](uint8_t, absl::string_view) {};
  for (auto _ : state) {
    core::EncodeMetadata(request.batch, &sent, tell, &bytes);
    benchmark::DoNotOptimize(bytes.data());
  }
}
BENCHMARK(EncodeRequestMetadata);

void DecodeRequestMetadata(benchmark::State& state) {
  grpc_core::ExecCtx context;
  Batch request;
  FillRequest(&request);
  std::string bytes;
  core::SentEntries sent;
  core::ReceivedEntries received;
  const auto tell = [&received](uint8_t number, absl::string_view entry) {
    (void)received.Add(number, entry);
  };
  // Encode several times first, as on a connection that has been in use.
  for (int i = 0; i < 3; ++i) {
    core::EncodeMetadata(request.batch, &sent, tell, &bytes);
  }
  Batch decoded;
  size_t size;
  for (auto _ : state) {
    decoded.batch.Clear();
    if (!core::DecodeMetadata(bytes, received, SIZE_MAX, &decoded.batch, &size)
             .ok()) {
      state.SkipWithError("not decoded");
      break;
    }
  }
}
BENCHMARK(DecodeRequestMetadata);

}  // namespace
}  // namespace bench
}  // namespace penstock
