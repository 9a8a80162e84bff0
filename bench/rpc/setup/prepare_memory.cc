#include "bench/rpc/setup/prepare_memory.h"

#include "bench/rpc/message/devices.h"
#include "bench/rpc/message/tensor_form.h"
#include "penstock/device_slices.h"

namespace penstock {
namespace bench {
namespace {

absl::Status PrepareDevice() {
  absl::Status status = UseDevice();
  if (status.ok()) status = CheckLending();
  if (!status.ok()) return status;
  SetMessagesOnDevice(kGpu);
  AcceptDeviceSlices("/penstock.bench.Rpc/");
  return absl::OkStatus();
}

}  // namespace

absl::Status PrepareMemory(const RunOptions& options) {
  if (!options.on_device) return absl::OkStatus();
  static const absl::Status& prepared = *new absl::Status(PrepareDevice());
  return prepared;
}

}  // namespace bench
}  // namespace penstock
