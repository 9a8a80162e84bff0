// Runs copies between a device and the host through the slots of a lane.

#ifndef PENSTOCK_TRANSPORT_DEVICE_SLOT_TRANSFER_H_
#define PENSTOCK_TRANSPORT_DEVICE_SLOT_TRANSFER_H_

#include <deque>
#include <vector>

#include "absl/status/status.h"
#include "transport/device/device.h"
#include "transport/device/lane.h"
#include "transport/device/slots.h"
#include "transport/device/staging_pipeline.h"

namespace penstock {
namespace device {

// A transfer in two stages: the device copies between its memory and a slot,
// and the CPU copies between the slot and the host's memory. For a copy to the
// host, the device's stage comes first. An object performs one transfer, in the
// device's context. Not thread-safe.
class SlotTransfer {
 public:
  // Refers to `device` and `lane`, which must outlive this object. The lane
  // must have slots.
  SlotTransfer(Device* device, Lane* lane, bool to_host,
               std::vector<SlotLoad> loads);

  // Blocks until all bytes have been copied. After an error, blocks until the
  // device has finished its started copies. Does not wait for a lost device.
  absl::Status Run();

 private:
  using Step = StagingPipeline::Step;

  int device_stage() const { return to_host_ ? 0 : 1; }
  void Add(const StagingPipeline::Steps& steps);
  absl::Status QueueOnDevice(const Step& step);
  void CopyOnCpu(const Step& step);
  // Waits for the oldest step that the device has not ended.
  absl::Status AwaitDevice();

  Device* const device_;
  Lane* const lane_;
  const bool to_host_;
  const std::vector<SlotLoad> loads_;
  StagingPipeline pipeline_;
  std::deque<Step> for_cpu_;
  std::deque<Step> on_device_;  // in the order in which they run
};

}  // namespace device
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_DEVICE_SLOT_TRANSFER_H_
