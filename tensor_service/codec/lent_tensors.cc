#include "tensor_service/codec/lent_tensors.h"

#include <utility>

#include "tensor_service/codec.h"
#include "tensor_service/device_memory.h"

namespace penstock::tensor {
namespace {

// Returns a slice that refers to the tensor on its device. Returns an empty
// slice if the tensor must be copied to the host, which is no error.
grpc::Slice LendIfPossible(const Tensor& tensor, DeviceMemory* memory) {
  if (memory == nullptr || tensor.byte_size() < kLendAtLeast) return {};
  absl::StatusOr<grpc::Slice> slice = memory->Lend(tensor.buffer());
  if (!slice.ok() || slice->size() != tensor.byte_size()) return {};
  return *std::move(slice);
}

}  // namespace

absl::StatusOr<LentTensors> LendOrStage(const Bundle& bundle) {
  LentTensors lent;
  lent.bundle = bundle;
  lent.slices.resize(bundle.tensors.size());
  Bundle staged;
  std::vector<NamedTensor*> places;
  for (size_t i = 0; i < bundle.tensors.size(); ++i) {
    NamedTensor& named = lent.bundle.tensors[i];
    if (named.tensor.device().is_host()) continue;
    lent.slices[i] = LendIfPossible(named.tensor, GetDeviceMemory());
    if (lent.slices[i].size() > 0) continue;
    staged.tensors.push_back(named);
    places.push_back(&named);
  }
  absl::StatusOr<Bundle> here = staged.ToHost();
  if (!here.ok()) return here.status();
  for (size_t i = 0; i < places.size(); ++i) *places[i] = here->tensors[i];
  return lent;
}

}  // namespace penstock::tensor
