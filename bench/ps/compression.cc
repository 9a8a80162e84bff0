// Measures the compression and decompression of gradients, compared with a copy
// in the same run, with the same threads. See docs/method.md.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "bench/rpc/report/statistics.h"
#include "ps/compression/compressor.h"
#include "ps/compression/decompress.h"
#include "ps/optim/workers.h"
#include "tensor_service/tensor.h"

namespace penstock::bench {
namespace {

using ps::compression::CompressionSpec;
using ps::compression::Compressor;
using ps::optim::Workers;
using tensor::DType;
using tensor::Tensor;
using Kind = CompressionSpec::Kind;

struct Contender {
  std::string name;
  size_t wire_bytes;
  std::function<void()> run;
  std::vector<double> seconds = {};
  std::vector<double> cpu_seconds = {};  // of all threads
};

// Returns the CPU time of this process, in seconds.
double CpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) +
         static_cast<double>(now.tv_nsec) * 1e-9;
}

template <typename T>
T OrExit(absl::StatusOr<T> result) {
  if (result.ok()) return *std::move(result);
  std::cerr << result.status() << "\n";
  std::exit(1);
}

Tensor NormalGradient(int64_t count) {
  Tensor gradient = OrExit(Tensor::Allocate(DType::kF32, {count}));
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 0.01F);
  const absl::Span<float> elements = OrExit(gradient.mutable_flat<float>());
  for (float& element : elements) element = normal(random);
  return gradient;
}

// The two ends of a connection for one gradient: the compressing sender and the
// receiver. The gradient is the same in each step, but the feedback changes.
class Wire {
 public:
  Wire(const CompressionSpec& spec, const Tensor& gradient,
       const Workers* workers)
      : gradient_(gradient),
        workers_(workers),
        compressor_(
            OrExit(Compressor::Create(spec, "v", gradient.shape(), workers))) {
    Compress();
  }

  void Compress() { list_ = OrExit(compressor_->Compress(gradient_, step_++)); }

  void Decompress() const {
    (void)OrExit(
        ps::compression::Decompress(gradient_.shape(), list_, *workers_));
  }

  size_t bytes() const {
    size_t bytes = 0;
    for (const Tensor& tensor : list_) bytes += tensor.byte_size();
    return bytes;
  }

 private:
  const Tensor gradient_;
  const Workers* const workers_;
  const std::unique_ptr<Compressor> compressor_;
  std::vector<Tensor> list_;
  uint64_t step_ = 1;
};

Tensor Like(const Tensor& tensor) {
  return OrExit(Tensor::Allocate(tensor.dtype(), tensor.shape()));
}

void Copy(const Tensor& from, const Workers& workers, const Tensor& to) {
  constexpr size_t kPart = 1 << 18;  // bytes per task
  const size_t size = from.byte_size();
  char* const data = to.buffer()->mutable_data();
  workers.ForEach((size + kPart - 1) / kPart, [&](size_t part) {
    const size_t at = part * kPart;
    std::memcpy(data + at, from.bytes().data() + at,
                std::min(kPart, size - at));
  });
}

// Runs all contenders in each round, so that a disturbance affects all alike.
void RunAll(int rounds, std::vector<Contender>* contenders) {
  // The first round, -1, is a warm-up and is not counted.
  for (int round = -1; round < rounds; ++round) {
    for (Contender& one : *contenders) {
      const auto begin = std::chrono::steady_clock::now();
      const double cpu_begin = CpuSeconds();
      one.run();
      const double cpu_seconds = CpuSeconds() - cpu_begin;
      const std::chrono::duration<double> taken =
          std::chrono::steady_clock::now() - begin;
      if (round < 0) continue;
      one.seconds.push_back(taken.count());
      one.cpu_seconds.push_back(cpu_seconds);
    }
  }
}

void Print(size_t bytes, const std::vector<Contender>& contenders) {
  std::cout << absl::StrFormat("%-26s%10s%26s%8s%10s%10s\n", "", "MB sent",
                               "ms (smallest-largest)", "GB/s", "CPU ms",
                               "of memcpy");
  for (const Contender& one : contenders) {
    const Spread spread = SpreadOf(one.seconds);
    const double median = Median(one.seconds);
    std::cout << absl::StrFormat(
        "%-26s%10.2f%26s%8.2f%10.2f%10.2f\n", one.name,
        static_cast<double>(one.wire_bytes) / 1e6,
        absl::StrFormat("%.2f (%.2f-%.2f)", median * 1e3, spread.min * 1e3,
                        spread.max * 1e3),
        static_cast<double>(bytes) / median / 1e9,
        Median(one.cpu_seconds) * 1e3,
        Median(one.cpu_seconds) / Median(contenders[0].cpu_seconds));
  }
}

int Main(int argc, char** argv) {
  CLI::App app("Compression of gradients, compared with a copy of them.");
  size_t mebibytes = 64;
  int rounds = 15, threads = 0;
  double ratio = 0.01;
  app.add_option("--mib", mebibytes, "of the f32 gradient")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  app.add_option("--rounds", rounds, "how often each runs, by turns")
      ->capture_default_str()
      ->check(CLI::Range(1, 10000));
  app.add_option("--threads", threads, "0: as many as there are processors")
      ->capture_default_str()
      ->check(CLI::Range(0, 1024));
  app.add_option("--ratio", ratio, "of top-k and random-k")
      ->capture_default_str()
      ->check(CLI::Range(1e-6, 1.0));
  CLI11_PARSE(app, argc, argv);

  const Workers workers(threads);
  const Tensor gradient =
      NormalGradient(static_cast<int64_t>((mebibytes << 20) / sizeof(float)));
  const size_t bytes = gradient.byte_size();
  // The target of "memcpy". "memcpy, to new memory" is for comparison, because
  // compression and decompression write to new memory each time.
  const Tensor copy = Like(gradient);
  std::vector<Contender> contenders = {
      {"memcpy", bytes, [&] { Copy(gradient, workers, copy); }},
      {"memcpy, to new memory", bytes,
       [&] { Copy(gradient, workers, Like(gradient)); }}};
  std::vector<std::unique_ptr<Wire>> wires;
  const auto add = [&](const std::string& name, Kind kind, DType dtype) {
    CompressionSpec spec;
    spec.kind = kind;
    spec.dtype = dtype;
    spec.ratio = ratio;
    wires.push_back(std::make_unique<Wire>(spec, gradient, &workers));
    Wire* const wire = wires.back().get();
    contenders.push_back(
        {name + ", compress", wire->bytes(), [wire] { wire->Compress(); }});
    if (kind == Kind::kHalf) return;  // needs no decompression
    contenders.push_back(
        {name + ", decompress", wire->bytes(), [wire] { wire->Decompress(); }});
  };
  add("bf16", Kind::kHalf, DType::kBF16);
  add("f16", Kind::kHalf, DType::kF16);
  add("top-k", Kind::kTopK, DType::kF32);
  add("random-k", Kind::kRandomK, DType::kF32);
  add("int8", Kind::kInt8, DType::kF32);
  RunAll(rounds, &contenders);
  std::cout << absl::StrFormat(
      "%d MiB of f32, ratio %g, %d threads, %d rounds\n", mebibytes, ratio,
      workers.threads(), rounds);
  Print(bytes, contenders);
  return 0;
}

}  // namespace
}  // namespace penstock::bench

int main(int argc, char** argv) { return penstock::bench::Main(argc, argv); }
