// The GPU that --memory=device measures.

#ifndef PENSTOCK_BENCH_RPC_MESSAGE_DEVICES_H_
#define PENSTOCK_BENCH_RPC_MESSAGE_DEVICES_H_

#include "absl/status/status.h"
#include "tensor_service/device.h"

namespace penstock {
namespace bench {

// The first device that CUDA shows to this process.
inline constexpr tensor::Device kGpu = {tensor::Device::Kind::kCuda, 0};

// Returns UNAVAILABLE, with the remedy, on a machine without a driver or a
// device. There is no substitute for a device.
absl::Status CheckDevice();

// Makes this process allocate, send and receive tensors on the device. Call it
// before the first channel or server. Returns UNAVAILABLE like CheckDevice(),
// or if the device does not have enough memory.
absl::Status UseDevice();

// Returns UNAVAILABLE, with the reason, if this process's transport does not
// accept messages on the device. Call it after UseDevice().
absl::Status CheckLending();

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_MESSAGE_DEVICES_H_
