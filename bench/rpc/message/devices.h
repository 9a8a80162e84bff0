// The GPU that --memory=device measures.

#ifndef PENSTOCK_BENCH_RPC_MESSAGE_DEVICES_H_
#define PENSTOCK_BENCH_RPC_MESSAGE_DEVICES_H_

#include "absl/status/status.h"
#include "tensor_service/device.h"

namespace penstock {
namespace bench {

// The first device that CUDA shows to this process.
inline constexpr tensor::Device kGpu = {tensor::Device::Kind::kCuda, 0};

// Returns OK if this machine has a GPU and its driver. Otherwise returns
// UNAVAILABLE with the remedy.
absl::Status CheckDevice();

// Makes this process allocate, send and receive tensors on the device. Call it
// before the first channel or server. Returns UNAVAILABLE like CheckDevice(),
// or if the device does not have enough memory.
absl::Status UseDevice();

// Returns OK if this process's transport accepts messages on the device.
// Otherwise returns UNAVAILABLE with the reason. Call it after UseDevice().
absl::Status CheckLending();

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_MESSAGE_DEVICES_H_
