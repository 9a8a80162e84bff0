// Where memory lies: on the host, or on a device such as a GPU.

#ifndef PENSTOCK_TENSOR_SERVICE_DEVICE_H_
#define PENSTOCK_TENSOR_SERVICE_DEVICE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace penstock::tensor {

// Whose memory it is. Device() is the host, whose memory the CPU reads and
// writes. An address on a CUDA device means nothing to the CPU.
struct Device {
  enum class Kind { kHost, kCuda };

  Kind kind = Kind::kHost;
  // Which of a kind, as CUDA numbers them in this process. 0 for the host.
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

// Returns the device that ToString() calls so; "cuda" is "cuda:0". Returns
// INVALID_ARGUMENT for any other text.
absl::StatusOr<Device> ParseDevice(absl::string_view text);

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_DEVICE_H_
