// The GPU that --memory=device measures.

#ifndef PENSTOCK_BENCH_RPC_DEVICES_H_
#define PENSTOCK_BENCH_RPC_DEVICES_H_

#include "absl/status/status.h"
#include "tensor_service/device.h"

namespace penstock {
namespace bench {

// The first that CUDA shows this process.
inline constexpr tensor::Device kGpu = {tensor::Device::Kind::kCuda, 0};

// Returns UNAVAILABLE, with the remedy, on a machine without a driver or a
// device. Nothing stands in for one.
absl::Status CheckDevice();

// Has tensors of this process lie on the device, and be sent from there and
// received there. Call it before the first channel or server. Returns
// UNAVAILABLE as CheckDevice() does, or if the device has no memory for us.
absl::Status UseDevice();

// Returns UNAVAILABLE, with the reason, if this process's transport does not
// take messages that lie on the device, after UseDevice().
absl::Status CheckLending();

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_DEVICES_H_
