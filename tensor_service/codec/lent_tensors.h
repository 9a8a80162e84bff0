// Makes tensors on devices available to a message.

#ifndef PENSTOCK_TENSOR_SERVICE_CODEC_LENT_TENSORS_H_
#define PENSTOCK_TENSOR_SERVICE_CODEC_LENT_TENSORS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "grpcpp/support/slice.h"
#include "tensor_service/tensor.h"

namespace penstock::tensor {

// Tensors whose elements a message can refer to.
struct LentTensors {
  Bundle bundle;
  // For each tensor that is still on a device, the slice of its elements, which
  // the CPU cannot read. Empty for other tensors.
  std::vector<grpc::Slice> slices;
};

// Lends the transport the tensors on devices that have kLendAtLeast bytes and
// that DeviceMemory::Lend() accepts. Copies other tensors on devices to memory
// of DefaultAllocator(), as one batch. Returns the errors of Bundle::ToHost().
absl::StatusOr<LentTensors> LendOrStage(const Bundle& bundle);

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_CODEC_LENT_TENSORS_H_
