#include "transport/device/copier.h"

#include <utility>
#include <vector>

#include "transport/device/slot_transfer.h"

namespace penstock {
namespace device {
namespace {

// The size in bytes from which host memory is looked up in PinnedRanges.
// Shorter copies are sent through slots, because the lookup costs about as much
// as such a copy.
constexpr size_t kMinPinnedBytes = 64 * 1024;

absl::Status QueueHostCopy(Device* device, abi::Stream stream, bool to_host,
                           const HostCopy& copy) {
  Api* const api = device->api();
  if (to_host) {
    return device->Check(
        api->MemcpyDtoHAsync(copy.host, copy.device, copy.bytes, stream),
        "copy to the host");
  }
  return device->Check(
      api->MemcpyHtoDAsync(copy.device, copy.host, copy.bytes, stream),
      "copy to a device");
}

absl::Status QueueHostCopies(Device* device, abi::Stream stream, bool to_host,
                             absl::Span<const HostCopy> copies) {
  for (const HostCopy& copy : copies) {
    absl::Status queued = QueueHostCopy(device, stream, to_host, copy);
    if (!queued.ok()) return queued;
  }
  return absl::OkStatus();
}

absl::Status QueueDeviceCopies(Device* from, Device* to, abi::Stream stream,
                               absl::Span<const DeviceCopy> copies) {
  Api* const api = from->api();
  for (const DeviceCopy& copy : copies) {
    const abi::Result queued =
        from == to
            ? api->MemcpyDtoDAsync(copy.to, copy.from, copy.bytes, stream)
            : api->MemcpyPeerAsync(copy.to, to->context(), copy.from,
                                   from->context(), copy.bytes, stream);
    absl::Status checked = from->Check(queued, "copy between devices");
    if (!checked.ok()) return checked;
  }
  return absl::OkStatus();
}

}  // namespace

Copier::Copier(Device* device, PinnedRanges* pinned, const Options& options)
    : device_(device),
      pinned_(pinned),
      lanes_(device, options.lanes, options.slots, options.slot_bytes),
      peers_(device) {}

absl::Status Copier::ToHost(absl::Span<const HostCopy> copies,
                            absl::Span<const abi::Event> after) {
  return CopyHost(Direction::kToHost, copies, after);
}

absl::Status Copier::FromHost(absl::Span<const HostCopy> copies,
                              absl::Span<const abi::Event> after) {
  return CopyHost(Direction::kFromHost, copies, after);
}

absl::Status Copier::CopyHost(Direction direction,
                              absl::Span<const HostCopy> copies,
                              absl::Span<const abi::Event> after) {
  const bool to_host = direction == Direction::kToHost;
  std::vector<PinnedRanges::Pin> pins;  // held until the copies have run
  std::vector<HostCopy> pinned;
  std::vector<HostCopy> others;
  for (const HostCopy& copy : copies) {
    PinnedRanges::Pin pin;
    if (copy.bytes >= kMinPinnedBytes) {
      pin = pinned_->Get(device_, copy.host, copy.bytes);
    }
    (pin != nullptr ? pinned : others).push_back(copy);
    if (pin != nullptr) pins.push_back(std::move(pin));
  }
  return InLane(after, [&](Lane* lane) {
    absl::Status queued =
        QueueHostCopies(device_, lane->stream(), to_host, pinned);
    if (!queued.ok() || others.empty()) return queued;
    if (lane->slots() == 0) {
      return QueueHostCopies(device_, lane->stream(), to_host, others);
    }
    SlotTransfer transfer(device_, lane, to_host,
                          DivideAmongSlots(others, lane->slot_bytes()));
    return transfer.Run();
  });
}

absl::Status Copier::OnDevice(Device* to, absl::Span<const DeviceCopy> copies,
                              absl::Span<const abi::Event> after) {
  peers_.Reach(to);
  return InLane(after, [&](Lane* lane) {
    return QueueDeviceCopies(device_, to, lane->stream(), copies);
  });
}

template <typename Run>
absl::Status Copier::InLane(absl::Span<const abi::Event> after, Run run) {
  absl::StatusOr<std::unique_ptr<Lane>> lane = lanes_.Take();
  if (!lane.ok()) return lane.status();
  absl::StatusOr<Device::Entered> entered = device_->Enter();
  absl::Status copied = entered.status();
  Api* const api = device_->api();
  const abi::Stream stream = (*lane)->stream();
  for (const abi::Event event : after) {
    if (!copied.ok()) break;
    copied = device_->Check(api->StreamWaitEvent(stream, event, 0),
                            "wait for another stream");
  }
  if (copied.ok()) copied = run(lane->get());
  // Waits for an event, because then the thread sleeps. cuStreamSynchronize()
  // would spin.
  if (copied.ok()) {
    copied = device_->Check(api->EventRecord((*lane)->mark(), stream),
                            "record an event");
  }
  if (copied.ok()) {
    copied = device_->Check(api->EventSynchronize((*lane)->mark()),
                            "wait for copies");
  }
  if (copied.ok()) {
    lanes_.GiveBack(*std::move(lane));
    return copied;
  }
  // Waits for copies that were queued before the error and may still be
  // running.
  (void)api->StreamSynchronize(stream);
  lanes_.Drop(*std::move(lane));
  return copied;
}

}  // namespace device
}  // namespace penstock
