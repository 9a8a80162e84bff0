#include "transport/device/remote_writes.h"

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace penstock {
namespace device {

absl::Status FlushRemoteWrites(Device* device) {
  // Returns the error of a lost device, whose memory cannot be read any more.
  absl::StatusOr<Device::Entered> entered = device->Enter();
  if (!entered.ok()) return entered.status();
  if (device->traits().sees_remote_writes) return absl::OkStatus();
  if (!device->traits().flushes_remote_writes) {
    return absl::FailedPreconditionError(absl::StrCat(
        device->ToString(),
        " may not see the writes of network devices to its memory"));
  }
  return device->Check(
      device->api()->FlushGPUDirectRDMAWrites(abi::kFlushWritesOfCurrentContext,
                                              abi::kFlushWritesToOwner),
      "flush the writes of network devices");
}

}  // namespace device
}  // namespace penstock
