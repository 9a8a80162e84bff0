// Measures the compression and decompression of gradients, compared with a copy
// in the same run, with the same threads. See docs/method.md.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "bench/ps/contender.h"
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

// A sender that compresses a gradient, and its receiver. The gradient is the
// same in each step, but the error feedback changes.
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

  double bytes() const {
    size_t bytes = 0;
    for (const Tensor& tensor : list_) bytes += tensor.byte_size();
    return static_cast<double>(bytes);
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

void Print(double bytes, const std::vector<Contender>& contenders) {
  std::cout << absl::StrFormat("%-26s%10s%26s%8s%10s%10s\n", "", "MB sent",
                               "ms (smallest-largest)", "GB/s", "CPU ms",
                               "of memcpy");
  for (const Contender& one : contenders) {
    std::cout << absl::StrFormat(
        "%-26s%10.2f%26s%8.2f%10.2f%10.2f\n", one.name, one.bytes / 1e6,
        MillisecondsOf(one), bytes / Median(one.seconds) / 1e9,
        Median(one.cpu_seconds) * 1e3,
        Median(one.cpu_seconds) / Median(contenders[0].cpu_seconds));
  }
}

// Appends the compressions of `gradient`, and their decompressions. The
// contenders refer to `wires`.
void AddCompressions(const Tensor& gradient, double ratio,
                     const Workers& workers,
                     std::vector<std::unique_ptr<Wire>>* wires,
                     std::vector<Contender>* contenders) {
  const auto add = [&](const std::string& name, Kind kind, DType dtype) {
    CompressionSpec spec;
    spec.kind = kind;
    spec.dtype = dtype;
    spec.ratio = ratio;
    wires->push_back(std::make_unique<Wire>(spec, gradient, &workers));
    Wire* const wire = wires->back().get();
    contenders->push_back(
        {name + ", compress", wire->bytes(), [wire] { wire->Compress(); }});
    if (kind == Kind::kHalf) return;  // needs no decompression
    contenders->push_back(
        {name + ", decompress", wire->bytes(), [wire] { wire->Decompress(); }});
  };
  add("bf16", Kind::kHalf, DType::kBF16);
  add("f16", Kind::kHalf, DType::kF16);
  add("top-k", Kind::kTopK, DType::kF32);
  add("random-k", Kind::kRandomK, DType::kF32);
  add("int8", Kind::kInt8, DType::kF32);
}

int Main(int argc, char** argv) {
  CLI::App app("Compression of gradients, compared with a copy of them.");
  ContenderFlags flags;
  DeclareFlags(&app, "of the f32 gradient", &flags);
  double ratio = 0.01;
  app.add_option("--ratio", ratio, "of top-k and random-k")
      ->capture_default_str()
      ->check(CLI::Range(1e-6, 1.0));
  CLI11_PARSE(app, argc, argv);

  const Workers workers(flags.threads);
  const Tensor gradient = NormalGradient(
      static_cast<int64_t>((flags.mebibytes << 20) / sizeof(float)));
  const auto bytes = static_cast<double>(gradient.byte_size());
  // The target of "memcpy". "memcpy, to new memory" is for comparison, because
  // compression and decompression write to new memory each time.
  const Tensor copy = Like(gradient);
  std::vector<Contender> contenders = {
      {"memcpy", bytes, [&] { Copy(gradient, workers, copy); }},
      {"memcpy, to new memory", bytes,
       [&] { Copy(gradient, workers, Like(gradient)); }}};
  std::vector<std::unique_ptr<Wire>> wires;
  AddCompressions(gradient, ratio, workers, &wires, &contenders);
  RunAll(flags.rounds, &contenders);
  std::cout << absl::StrFormat(
      "%d MiB of f32, ratio %g, %d threads, %d rounds\n", flags.mebibytes,
      ratio, workers.threads(), flags.rounds);
  Print(bytes, contenders);
  return 0;
}

}  // namespace
}  // namespace penstock::bench

int main(int argc, char** argv) { return penstock::bench::Main(argc, argv); }
