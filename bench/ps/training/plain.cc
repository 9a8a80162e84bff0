#include <algorithm>
#include <vector>

#include "bench/ps/training/read.h"
#include "bench/ps/training/roles.h"
#include "bench/ps/training/rounds.h"
#include "bench/rpc/report/statistics.h"
#include "bench/rpc/setup/child_process.h"
#include "ps/optim/workers.h"
#include "tensor_service/tensor.h"

namespace penstock::bench {
namespace {

using tensor::Tensor;

absl::StatusOr<Tensor> Filled(int64_t elements, float element) {
  auto tensor = Tensor::Allocate(tensor::DType::kF32, {elements});
  if (!tensor.ok()) return tensor;
  auto flat = tensor->mutable_flat<float>();
  if (!flat.ok()) return flat.status();
  std::fill(flat->begin(), flat->end(), element);
  return tensor;
}

void Step(const float* gradient, float* value, size_t count,
          const ps::optim::Workers& workers) {
  constexpr size_t kPart = kTaskBytes / sizeof(float);
  workers.ForEach((count + kPart - 1) / kPart, [&](size_t part) {
    const size_t end = std::min(count, (part + 1) * kPart);
    for (size_t i = part * kPart; i < end; ++i) value[i] -= kRate * gradient[i];
  });
}

absl::StatusOr<Figures> Round(double seconds, const Tensor& gradient,
                              Tensor* value,
                              const ps::optim::Workers& workers) {
  auto* const elements =
      reinterpret_cast<float*>(value->buffer()->mutable_data());
  const auto* const from =
      reinterpret_cast<const float*>(gradient.bytes().data());
  std::vector<double> steps;
  const double cpu_begin = SecondsOf(CLOCK_PROCESS_CPUTIME_ID);
  const double first = Now();
  double begin = first;
  while (begin - first < seconds || steps.size() < 3) {
    Step(from, elements, value->num_elements(), workers);
    ReadAll(value->bytes(), workers);
    const double end = Now();
    steps.push_back(end - begin);
    begin = end;
  }
  Figures figures;
  figures.cpu = (SecondsOf(CLOCK_PROCESS_CPUTIME_ID) - cpu_begin) /
                static_cast<double>(steps.size());
  figures.step = Median(std::move(steps));
  return figures;
}

}  // namespace

void RunPlain(const RoleOptions& options) {
  BecomeChild();
  const ps::optim::Workers workers;
  auto gradient = Filled(options.sizes.elements, 1);
  if (!gradient.ok()) GiveUp(gradient.status());
  auto value = Filled(options.sizes.elements, 0);
  if (!value.ok()) GiveUp(value.status());
  ServeRounds(
      [&] { return Round(options.seconds, *gradient, &*value, workers); });
}

}  // namespace penstock::bench
