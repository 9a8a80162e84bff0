// The simulated driver's kernels, which run on the CPU.

#include <cstring>
#include <utility>

#include "tests/transport/device/fake_objects.h"
#include "transport/device/kernels/arguments.h"
#include "transport/device/kernels/launch_plan.h"
#include "transport/device/kernels/reduce_thread.h"
#include "transport/device/kernels/reduction.h"

namespace penstock {
namespace device {
namespace {

using kernels::Arguments;
using kernels::ElementType;
using kernels::Operation;

template <Operation kOperation>
void RunThread(ElementType type, const Arguments& arguments, uint64_t thread,
               uint64_t threads) {
  switch (type) {
    case ElementType::kF32:
      return kernels::ReduceThread<kOperation, float>(arguments, thread,
                                                      threads);
    case ElementType::kF16:
      return kernels::ReduceThread<kOperation, kernels::Half>(arguments, thread,
                                                              threads);
    case ElementType::kBf16:
      return kernels::ReduceThread<kOperation, kernels::Bfloat16>(
          arguments, thread, threads);
  }
}

void RunThread(const abi::FunctionObject& function, const Arguments& arguments,
               uint64_t thread, uint64_t threads) {
  switch (function.operation) {
    case Operation::kSum:
      return RunThread<Operation::kSum>(function.type, arguments, thread,
                                        threads);
    case Operation::kMean:
      return RunThread<Operation::kMean>(function.type, arguments, thread,
                                         threads);
    case Operation::kScaledAdd:
      return RunThread<Operation::kScaledAdd>(function.type, arguments, thread,
                                              threads);
  }
}

}  // namespace

abi::Result FakeDriver::ModuleLoadData(abi::Module* module, const void* image) {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  const abi::Result begun = BeginHere("ModuleLoadData");
  if (begun != abi::kSuccess) return begun;
  if (image == nullptr) return abi::kInvalidValue;
  *module = new abi::ModuleObject{Current()->device};
  modules_[*module];
  return abi::kSuccess;
}

abi::Result FakeDriver::ModuleUnload(abi::Module module) {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  (void)Begin("ModuleUnload", true);
  if (modules_.erase(module) == 0) return abi::kInvalidHandle;
  delete module;
  return abi::kSuccess;
}

abi::Result FakeDriver::ModuleGetFunction(abi::Function* function,
                                          abi::Module module,
                                          const char* name) {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  const abi::Result begun = BeginHere("ModuleGetFunction");
  if (begun != abi::kSuccess) return begun;
  for (Operation operation :
       {Operation::kSum, Operation::kMean, Operation::kScaledAdd}) {
    for (ElementType type :
         {ElementType::kF32, ElementType::kF16, ElementType::kBf16}) {
      if (std::strcmp(kernels::KernelName(operation, type), name) != 0)
        continue;
      auto found = std::make_unique<abi::FunctionObject>();
      found->operation = operation;
      found->type = type;
      *function = found.get();
      modules_[module].push_back(std::move(found));
      return abi::kSuccess;
    }
  }
  return abi::kNotFound;
}

abi::Result FakeDriver::LaunchKernel(abi::Function function, unsigned blocks,
                                     unsigned threads, abi::Stream stream,
                                     void** parameters) {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  const abi::Result begun = BeginHere("LaunchKernel");
  if (begun != abi::kSuccess) return begun;
  if (!Knows(stream)) return abi::kInvalidHandle;
  auto arguments = *static_cast<const Arguments*>(parameters[0]);
  const size_t bytes = arguments.count * kernels::ElementBytes(function->type);
  const auto backing = [&](const void* address) {
    return Backing(reinterpret_cast<abi::Address>(address), bytes);
  };
  for (uint32_t i = 0; i < arguments.fan_in; ++i) {
    arguments.inputs[i] = backing(arguments.inputs[i]);
    if (arguments.inputs[i] == nullptr) return abi::kIllegalAddress;
  }
  arguments.output = backing(arguments.output);
  if (arguments.output == nullptr) return abi::kIllegalAddress;
  const abi::FunctionObject run = *function;
  abi::Work work;
  work.run = [=] {
    const uint64_t all = uint64_t{blocks} * threads;
    for (uint64_t thread = 0; thread < all; ++thread) {
      RunThread(run, arguments, thread, all);
    }
  };
  stream->queue.push_back(std::move(work));
  ++stream->queued;
  return abi::kSuccess;
}

}  // namespace device
}  // namespace penstock
