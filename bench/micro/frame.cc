// Measures the encoding and decoding of frames, and of the hello of a session.

#include "transport/wire/frame.h"

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "benchmark/benchmark.h"
#include "transport/wire/hello.h"

namespace penstock {
namespace bench {
namespace {

absl::Span<const uint8_t> AsBytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

wire::FrameHeader MessageHeader() {
  wire::FrameHeader header;
  header.type = wire::FrameType::kMessage;
  header.stream = 1;
  header.sequence = 1;
  return header;
}

void AppendFrame(benchmark::State& state) {
  const std::string payload(state.range(0), 'm');
  std::string out;
  for (auto _ : state) {
    out.clear();
    wire::AppendFrame(MessageHeader(), payload, &out);
    benchmark::DoNotOptimize(out.data());
  }
}
BENCHMARK(AppendFrame)->Arg(8)->Arg(8192);

void TakeFrame(benchmark::State& state) {
  std::string bytes;
  wire::AppendFrame(MessageHeader(), std::string(state.range(0), 'm'), &bytes);
  for (auto _ : state) {
    absl::Span<const uint8_t> rest = AsBytes(bytes);
    const auto frame = wire::TakeFrame(&rest);
    if (!frame.ok()) state.SkipWithError("not a frame");
    benchmark::DoNotOptimize(frame);
  }
}
BENCHMARK(TakeFrame)->Arg(8)->Arg(8192);

wire::Hello MakeHello() {
  wire::Hello hello;
  hello.token = "0123456789abcdef";
  hello.stream_window = 4 * 1024 * 1024;
  hello.offers = {{"shm", true, "@penstock-0123456789abcdef"},
                  {"verbs", false, "no device"}};
  return hello;
}

void EncodeHello(benchmark::State& state) {
  const wire::Hello hello = MakeHello();
  for (auto _ : state) benchmark::DoNotOptimize(wire::EncodeHello(hello));
}
BENCHMARK(EncodeHello);

void ParseHello(benchmark::State& state) {
  const std::string bytes = wire::EncodeHello(MakeHello());
  for (auto _ : state) {
    const auto hello = wire::ParseHello(AsBytes(bytes));
    if (!hello.ok()) state.SkipWithError("not a hello");
    benchmark::DoNotOptimize(hello);
  }
}
BENCHMARK(ParseHello);

}  // namespace
}  // namespace bench
}  // namespace penstock
