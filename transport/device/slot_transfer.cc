#include "transport/device/slot_transfer.h"

#include <cstring>
#include <utility>

namespace penstock {
namespace device {

SlotTransfer::SlotTransfer(Device* device, Lane* lane, bool to_host,
                           std::vector<SlotLoad> loads)
    : device_(device),
      lane_(lane),
      to_host_(to_host),
      loads_(std::move(loads)),
      pipeline_({loads_.size(), lane->slots(), /*stages=*/2}) {}

absl::Status SlotTransfer::Run() {
  Add(pipeline_.Start());
  while (!pipeline_.finished()) {
    // Makes the CPU's copies now. Add() has queued the device's next copies
    // before, so that CPU and device copy in parallel.
    if (!for_cpu_.empty()) {
      const Step step = for_cpu_.front();
      for_cpu_.pop_front();
      if (pipeline_.error().ok()) CopyOnCpu(step);
      Add(pipeline_.OnDone(step.stage));
      continue;
    }
    absl::Status awaited = AwaitDevice();
    if (!awaited.ok()) pipeline_.Fail(std::move(awaited));
    Add(pipeline_.OnDone(device_stage()));
  }
  return pipeline_.error();
}

void SlotTransfer::Add(const StagingPipeline::Steps& steps) {
  for (const Step& step : steps) {
    if (step.stage != device_stage()) {
      for_cpu_.push_back(step);
      continue;
    }
    on_device_.push_back(step);
    if (!pipeline_.error().ok()) continue;
    absl::Status queued = QueueOnDevice(step);
    if (!queued.ok()) pipeline_.Fail(std::move(queued));
  }
}

absl::Status SlotTransfer::QueueOnDevice(const Step& step) {
  Api* const api = device_->api();
  char* in_slot = lane_->slot(step.slot);
  for (const HostCopy& copy : loads_[step.chunk]) {
    const abi::Result queued =
        to_host_ ? api->MemcpyDtoHAsync(in_slot, copy.device, copy.bytes,
                                        lane_->stream())
                 : api->MemcpyHtoDAsync(copy.device, in_slot, copy.bytes,
                                        lane_->stream());
    if (queued != abi::kSuccess) {
      return device_->Check(queued,
                            to_host_ ? "copy to the host" : "copy to a device");
    }
    in_slot += SlotBytes(copy.bytes);
  }
  return device_->Check(
      api->EventRecord(lane_->slot_event(step.slot), lane_->stream()),
      "record an event");
}

void SlotTransfer::CopyOnCpu(const Step& step) {
  char* in_slot = lane_->slot(step.slot);
  for (const HostCopy& copy : loads_[step.chunk]) {
    if (to_host_) {
      std::memcpy(copy.host, in_slot, copy.bytes);
    } else {
      std::memcpy(in_slot, copy.host, copy.bytes);
    }
    in_slot += SlotBytes(copy.bytes);
  }
}

absl::Status SlotTransfer::AwaitDevice() {
  const Step step = on_device_.front();
  on_device_.pop_front();
  // Returns after an error. The code that drops the lane then waits for the
  // whole stream.
  if (!pipeline_.error().ok()) return absl::OkStatus();
  return device_->Check(
      device_->api()->EventSynchronize(lane_->slot_event(step.slot)),
      "wait for a copy");
}

}  // namespace device
}  // namespace penstock
