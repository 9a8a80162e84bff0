// Measures optimizer steps, compared with the memory's limit in the same run,
// with the same threads. See docs/method.md.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_format.h"
#include "bench/ps/contender.h"
#include "bench/ps/triad.h"
#include "bench/rpc/report/statistics.h"
#include "ps/optim/dense.h"
#include "ps/optim/optimizer.h"
#include "ps/optim/workers.h"
#include "tensor_service/tensor.h"

namespace penstock::bench {
namespace {

using ps::optim::Optimizer;
using ps::optim::Workers;
using tensor::DType;
using tensor::Tensor;

constexpr size_t kPart = 1 << 16;  // elements per task of the triad

Tensor Filled(DType dtype, size_t count, float scale) {
  Tensor wide =
      Tensor::Allocate(DType::kF32, {static_cast<int64_t>(count)}).value();
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, scale);
  const absl::Span<float> elements = wide.mutable_flat<float>().value();
  for (float& element : elements) element = normal(random);
  if (dtype == DType::kF32) return wide;
  Tensor narrow =
      Tensor::Allocate(dtype, {static_cast<int64_t>(count)}).value();
  // Copy the upper half of each f32 element, which is a bf16.
  const auto* bits = reinterpret_cast<const uint32_t*>(wide.bytes().data());
  const absl::Span<tensor::BFloat16> halves =
      narrow.mutable_flat<tensor::BFloat16>().value();
  for (tensor::BFloat16& half : halves) {
    half.bits = static_cast<uint16_t>(*bits++ >> 16);
  }
  return narrow;
}

// A value and its training state. A step reads one of two buffers and writes
// the other, as in a server.
class Training {
 public:
  Training(ps::optim::Rule rule, DType dtype, size_t count,
           std::vector<DType> gradients, const Workers* workers)
      : dtype_(dtype), count_(count), workers_(workers) {
    ps::optim::OptimizerConfig config;
    config.rule = rule;
    optimizer_ = Optimizer::Create(config).value();
    for (DType type : gradients) {
      gradients_.push_back(Filled(type, count, 0.01F));
      views_.push_back({type, gradients_.back().buffer()->data(), count});
    }
    for (Tensor& value : values_) value = Filled(dtype, count, 1);
    for (const auto& slot : ps::optim::DenseSlotsOf(*optimizer_, dtype)) {
      slots_.push_back(
          Tensor::Allocate(slot.dtype, {static_cast<int64_t>(count)}).value());
      slot_data_.push_back(slots_.back().buffer()->mutable_data());
      InitializeSlot(slot, dtype, values_[0].buffer()->data(), count,
                     slot_data_.back());
    }
  }

  void Step() {
    ++step_;
    const ps::optim::Scalars scalars = optimizer_->ScalarsOf(step_);
    ps::optim::DenseStep step;
    step.optimizer = optimizer_.get();
    step.scalars = &scalars;
    step.dtype = dtype_;
    step.count = count_;
    step.gradients = views_;
    step.value = values_[step_ % 2].buffer()->data();
    step.updated = values_[(step_ + 1) % 2].buffer()->mutable_data();
    step.slots = slot_data_;
    const absl::Status status = ApplyDense({step}, *workers_);
    if (!status.ok()) {
      std::cerr << status << "\n";
      std::exit(1);
    }
  }

  // Returns the bytes that a step moves: reads of gradient, slots and value,
  // and writes of slots and value. For f16 and bf16, the slot "master" is read
  // instead of the value. Excludes the reading of cache lines that are about to
  // be overwritten, because it is avoidable.
  double bytes() const {
    const size_t own = tensor::ElementSize(dtype_);
    size_t bytes = own + (own < 4 ? 0 : own);
    for (const Tensor& gradient : gradients_) {
      bytes += tensor::ElementSize(gradient.dtype());
    }
    for (const Tensor& slot : slots_) {
      bytes += 2 * tensor::ElementSize(slot.dtype());
    }
    return static_cast<double>(bytes * count_);
  }

 private:
  const DType dtype_;
  const size_t count_;
  const Workers* const workers_;
  std::shared_ptr<const Optimizer> optimizer_;
  std::vector<Tensor> gradients_, slots_;
  std::vector<ps::optim::GradientView> views_;
  std::vector<void*> slot_data_;
  Tensor values_[2];
  uint64_t step_ = 0;
};

// Measures the memory's bandwidth by triads over three arrays of a value's
// size.
class Stream {
 public:
  Stream(size_t count, const Workers* workers)
      : count_(count), workers_(workers) {
    for (Tensor& array : arrays_) array = Filled(DType::kF32, count, 1);
    for (size_t i = 0; i < 3; ++i) {
      at_[i] = arrays_[i].mutable_flat<float>().value().data();
    }
  }

  void Run(bool streamed) {
    workers_->ForEach((count_ + kPart - 1) / kPart, [&](size_t part) {
      const size_t at = part * kPart;
      (streamed ? StreamedTriad : Triad)(at_[1] + at, at_[2] + at, 0.5F,
                                         at_[0] + at,
                                         std::min(kPart, count_ - at));
    });
  }

 private:
  const size_t count_;
  const Workers* const workers_;
  Tensor arrays_[3];
  float* at_[3];
};

// Returns the bytes per second of a contender. `times` selects one of the two
// measured times.
double BytesPerSecond(const Contender& one,
                      std::vector<double> Contender::*times) {
  return one.bytes / Median(one.*times);
}

// Returns the time of a contender as a multiple of the memory's limit: the time
// that the faster triad would need for as many bytes. The triads are the first
// two contenders.
double OfTheLimit(const std::vector<Contender>& contenders,
                  const Contender& one, std::vector<double> Contender::*times) {
  return std::max(BytesPerSecond(contenders[0], times),
                  BytesPerSecond(contenders[1], times)) /
         BytesPerSecond(one, times);
}

void Print(const std::vector<Contender>& contenders) {
  std::cout << absl::StrFormat("%-28s%10s%24s%8s%10s%10s%10s\n", "", "MB moved",
                               "ms (smallest-largest)", "GB/s", "of limit",
                               "CPU ms", "of limit");
  for (const Contender& one : contenders) {
    std::cout << absl::StrFormat(
        "%-28s%10.1f%24s%8.2f%10.2f%10.2f%10.2f\n", one.name, one.bytes / 1e6,
        MillisecondsOf(one), BytesPerSecond(one, &Contender::seconds) / 1e9,
        OfTheLimit(contenders, one, &Contender::seconds),
        Median(one.cpu_seconds) * 1e3,
        OfTheLimit(contenders, one, &Contender::cpu_seconds));
  }
}

int Main(int argc, char** argv) {
  CLI::App app("Steps of optimizers, compared with the limit of the memory.");
  ContenderFlags flags;
  DeclareFlags(&app, "of an f32 value", &flags);
  CLI11_PARSE(app, argc, argv);

  using ps::optim::Rule;
  const size_t count = (flags.mebibytes << 20) / sizeof(float);
  const Workers workers(flags.threads);
  const auto f32 = DType::kF32, bf16 = DType::kBF16;
  Stream stream(count, &workers);
  const double array = static_cast<double>(count * sizeof(float));
  std::vector<Contender> contenders = {
      {"triad, by way of the caches", 4 * array, [&] { stream.Run(false); }},
      {"triad, past the caches", 3 * array, [&] { stream.Run(true); }},
  };
  std::vector<std::unique_ptr<Training>> trainings;
  const auto add = [&](std::string name, Rule rule, DType dtype,
                       std::vector<DType> gradients) {
    trainings.push_back(
        std::make_unique<Training>(rule, dtype, count, gradients, &workers));
    Training* const training = trainings.back().get();
    contenders.push_back(
        {name, training->bytes(), [training] { training->Step(); }});
  };
  for (Rule rule : {Rule::kSgd, Rule::kMomentum, Rule::kAdagrad, Rule::kAdam,
                    Rule::kFtrl}) {
    add(std::string(Name(rule)), rule, f32, {f32});
  }
  add("adam, mean of 4", Rule::kAdam, f32, {f32, f32, f32, f32});
  add("adam, bf16 value, gradient", Rule::kAdam, bf16, {bf16});
  const Tensor gradient = Filled(f32, count, 1);
  contenders.push_back({"check of a gradient", array, [&] {
                          (void)ps::optim::CheckGradient(
                              {DType::kF32, gradient.buffer()->data(), count},
                              DType::kF32, workers);
                        }});
  RunAll(flags.rounds, &contenders);
  std::cout << absl::StrFormat("%d MiB of f32, %d threads, %d rounds\n",
                               flags.mebibytes, workers.threads(),
                               flags.rounds);
  Print(contenders);
  return 0;
}

}  // namespace
}  // namespace penstock::bench

int main(int argc, char** argv) { return penstock::bench::Main(argc, argv); }
