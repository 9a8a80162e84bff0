#include "bench/rpc/message/devices.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/destinations.h"
#include "penstock/device_slices.h"
#include "penstock/penstock.h"
#include "tensor_service/codec.h"
#include "tensor_service/cuda/cuda_memory.h"
#include "tensor_service/device_memory.h"
#include "tensor_service/direct_receive.h"
#include "tensor_service/pool_allocator.h"

namespace penstock {
namespace bench {
namespace {

absl::Status Unavailable(const absl::Status& why) {
  return absl::UnavailableError(absl::StrCat(
      "device memory cannot be measured here: ", why.message(),
      "; run it on a machine with an NVIDIA GPU and its driver, or without "
      "--memory=device"));
}

}  // namespace

absl::Status CheckDevice() {
  const auto cuda = tensor::CudaMemory::OfProcess();
  return cuda.ok() ? absl::OkStatus() : Unavailable(cuda.status());
}

absl::Status UseDevice() {
  const auto cuda = tensor::CudaMemory::OfProcess();
  if (!cuda.ok()) return Unavailable(cuda.status());
  const auto trial = (*cuda)->Allocate(kGpu, 1);
  if (!trial.ok()) return Unavailable(trial.status());
  tensor::SetDeviceMemory(*cuda);
  tensor::SetDefaultAllocator(tensor::PoolAllocator<Allocator>());
  tensor::SetDirectReceiver(tensor::DirectReceiverBy<penstock::Destinations>(
      &penstock::AcceptDeviceSlices));
  return absl::OkStatus();
}

absl::Status CheckLending() {
  auto trial = tensor::GetDeviceMemory()->Allocate(kGpu, tensor::kLendAtLeast);
  if (!trial.ok()) return Unavailable(trial.status());
  const auto lent = tensor::GetDeviceMemory()->Lend(*std::move(trial));
  return lent.ok() ? absl::OkStatus() : Unavailable(lent.status());
}

}  // namespace bench
}  // namespace penstock
