#include "transport/device/reducer.h"

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "transport/device/kernels/fatbin.h"
#include "transport/device/kernels/launch_plan.h"

namespace penstock {
namespace device {

absl::StatusOr<std::unique_ptr<Reducer>> Reducer::Create(Device* device) {
  absl::StatusOr<absl::Span<const unsigned char>> image = kernels::Fatbin();
  if (!image.ok()) return image.status();
  absl::StatusOr<Module> module = LoadModule(device, image->data());
  if (!module.ok()) return module.status();
  return absl::WrapUnique(new Reducer(device, *std::move(module)));
}

absl::Status Reducer::Queue(const kernels::Reduction& reduction,
                            abi::Stream stream) {
  absl::StatusOr<kernels::LaunchPlan> plan =
      kernels::PlanLaunch(reduction, device_->traits().multiprocessors);
  if (!plan.ok() || plan->blocks == 0) return plan.status();
  absl::StatusOr<Device::Entered> entered = device_->Enter();
  if (!entered.ok()) return entered.status();
  absl::StatusOr<abi::Function> function = FunctionOf(plan->kernel);
  if (!function.ok()) return function.status();
  void* parameters[] = {&plan->arguments};
  return device_->Check(
      device_->api()->LaunchKernel(*function, plan->blocks, plan->threads,
                                   stream, parameters),
      absl::StrCat("start ", plan->kernel));
}

absl::StatusOr<abi::Function> Reducer::FunctionOf(const char* name) {
  base::MutexLock lock(&mu_);
  abi::Function& function = functions_[name];
  if (function != nullptr) return function;
  absl::Status found = device_->Check(
      device_->api()->ModuleGetFunction(&function, module_.get(), name),
      absl::StrCat("find ", name));
  if (!found.ok()) return found;
  return function;
}

}  // namespace device
}  // namespace penstock
