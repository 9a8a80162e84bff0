#include "transport/device/kernels/launch_plan.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace penstock::device::kernels {
namespace {

// Limits the blocks of a launch for each multiprocessor. Eight blocks have
// 2,048 threads, as many as a multiprocessor can run. For longer arrays, each
// thread handles more vectors.
constexpr uint64_t kBlocksPerMultiprocessor = 8;

uint64_t Misalignment(const void* array) {
  return reinterpret_cast<uintptr_t>(array) % kVectorBytes;
}

bool AreAlignedAlike(const Reduction& reduction) {
  return std::all_of(reduction.inputs.begin(), reduction.inputs.end(),
                     [&reduction](const void* input) {
                       return Misalignment(input) ==
                              Misalignment(reduction.output);
                     });
}

void Divide(const Reduction& reduction, Arguments* arguments) {
  if (!AreAlignedAlike(reduction)) return;
  const size_t element = ElementBytes(reduction.type);
  const uint64_t beyond = Misalignment(reduction.output);
  const uint64_t head = beyond == 0 ? 0 : (kVectorBytes - beyond) / element;
  arguments->head = std::min(head, reduction.count);
  arguments->vectors =
      (reduction.count - arguments->head) / (kVectorBytes / element);
}

}  // namespace

const char* KernelName(Operation operation, ElementType type) {
  static constexpr const char* kNames[3][3] = {
      {"penstock_sum_f32", "penstock_sum_f16", "penstock_sum_bf16"},
      {"penstock_mean_f32", "penstock_mean_f16", "penstock_mean_bf16"},
      {"penstock_scaled_add_f32", "penstock_scaled_add_f16",
       "penstock_scaled_add_bf16"},
  };
  return kNames[static_cast<int>(operation)][static_cast<int>(type)];
}

absl::StatusOr<LaunchPlan> PlanLaunch(const Reduction& reduction,
                                      int multiprocessors) {
  if (absl::Status status = Check(reduction); !status.ok()) return status;
  if (multiprocessors <= 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "reduction: a device of ", multiprocessors, " multiprocessors"));
  }
  LaunchPlan plan;
  plan.kernel = KernelName(reduction.operation, reduction.type);
  Arguments& arguments = plan.arguments;
  std::copy(reduction.inputs.begin(), reduction.inputs.end(), arguments.inputs);
  arguments.output = reduction.output;
  arguments.count = reduction.count;
  arguments.fan_in = static_cast<uint32_t>(reduction.inputs.size());
  arguments.scale = ScaleOf(reduction);
  Divide(reduction, &arguments);
  const uint64_t lanes = kVectorBytes / ElementBytes(reduction.type);
  const uint64_t turns =
      std::max(arguments.vectors, arguments.count - arguments.vectors * lanes);
  const uint64_t useful =
      turns / kThreadsPerBlock + (turns % kThreadsPerBlock == 0 ? 0 : 1);
  plan.blocks = static_cast<uint32_t>(
      std::min(useful, multiprocessors * kBlocksPerMultiprocessor));
  return plan;
}

}  // namespace penstock::device::kernels
