// The location of memory: the host, or a device such as a GPU.

#ifndef PENSTOCK_TENSOR_SERVICE_DEVICE_H_
#define PENSTOCK_TENSOR_SERVICE_DEVICE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace penstock::tensor {

// The owner of some memory. Device() is the host, whose memory the CPU reads
// and writes. The CPU cannot use an address on a CUDA device.
struct Device {
  enum class Kind { kHost, kCuda };

  Kind kind = Kind::kHost;
  // The number within the kind: CUDA's number in this process, or 0 for the
  // host.
  int index = 0;

  bool is_host() const { return kind == Kind::kHost; }

  // Returns "cpu", or "cuda:1".
  std::string ToString() const;
};

inline bool operator==(const Device& a, const Device& b) {
  return a.kind == b.kind && a.index == b.index;
}
inline bool operator!=(const Device& a, const Device& b) { return !(a == b); }
inline bool operator<(const Device& a, const Device& b) {
  return a.kind != b.kind ? a.kind < b.kind : a.index < b.index;
}

// Parses the result of Device::ToString(); "cuda" means "cuda:0". Returns
// INVALID_ARGUMENT for any other text.
absl::StatusOr<Device> ParseDevice(absl::string_view text);

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_DEVICE_H_
