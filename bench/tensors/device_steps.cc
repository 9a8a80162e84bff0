#include "bench/tensors/device_steps.h"

#include <utility>

#include "absl/types/span.h"
#include "bench/tensors/sum.h"
#include "bench/tensors/system.h"
#include "tensor_service/codec.h"
#include "tensor_service/device_memory.h"

namespace penstock::bench {
namespace {

using tensor::Bundle;
using tensor::Destination;
using tensor::Device;
using tensor::DeviceMemory;
using tensor::DeviceTensors;
using tensor::NamedTensor;
using tensor::Tensor;

// Returns a tensor with the type and shape of `tensor`, in uninitialised
// memory.
absl::StatusOr<Tensor> AllocateLike(const Tensor& tensor, const Device& device,
                                    DeviceMemory* memory) {
  if (device.is_host()) {
    return Tensor::Allocate(tensor.dtype(), tensor.shape());
  }
  auto buffer = memory->Allocate(device, tensor.byte_size());
  if (!buffer.ok()) return buffer.status();
  return Tensor::FromBuffer(tensor.dtype(), tensor.shape(), *std::move(buffer));
}

absl::Status Clear(const std::vector<Destination>& places,
                   DeviceMemory* memory) {
  std::vector<std::string> zeroes;
  std::vector<tensor::CopyFromHost> copies;
  zeroes.reserve(places.size());
  for (const Destination& place : places) {
    const size_t size = place.into.byte_size();
    if (size == 0) continue;
    zeroes.emplace_back(size, '\0');
    copies.push_back(
        {zeroes.back().data(), size, place.into.buffer().get(), 0});
  }
  return copies.empty() ? absl::OkStatus() : memory->Copy(copies);
}

bool Fits(const std::vector<Destination>& places, const Bundle& bundle) {
  bool fits = places.size() == bundle.tensors.size();
  for (size_t i = 0; fits && i < places.size(); ++i) {
    const NamedTensor& named = bundle.tensors[i];
    fits = places[i].name == named.name &&
           places[i].into.dtype() == named.tensor.dtype() &&
           places[i].into.shape() == named.tensor.shape();
  }
  return fits;
}

}  // namespace

absl::StatusOr<Bundle> OnDevice(const Bundle& bundle, const Device& device) {
  Bundle there;
  for (const NamedTensor& named : bundle.tensors) {
    auto tensor = named.tensor.ToDevice(device);
    if (!tensor.ok()) return tensor.status();
    there.tensors.push_back({named.name, *std::move(tensor)});
  }
  return there;
}

absl::StatusOr<uint64_t> SumAnywhere(const Bundle& bundle) {
  const absl::StatusOr<Bundle> here = bundle.ToHost();
  if (!here.ok()) return here.status();
  uint64_t sum = 0;
  for (const NamedTensor& named : here->tensors) {
    sum += SumOf(named.tensor.bytes());
  }
  return sum;
}

absl::Status DeviceReceiver::Prepare(const Bundle& bundle, bool clear) {
  absl::StatusOr<DeviceMemory*> memory = tensor::NeedDeviceMemory("receive");
  if (!memory.ok()) return memory.status();
  if (!Fits(places_, bundle)) {
    places_.clear();
    for (const NamedTensor& named : bundle.tensors) {
      auto place = AllocateLike(named.tensor, device_, *memory);
      if (!place.ok()) return place.status();
      places_.emplace_back(named.name, *std::move(place));
    }
  }
  return clear ? Clear(places_, *memory) : absl::OkStatus();
}

absl::StatusOr<DeviceReceiver::Received> DeviceReceiver::Receive(
    const grpc::ByteBuffer& request) {
  Received received;
  std::string header;
  const auto handed = Decode(request, &header, {}, DeviceTensors::kKeep);
  if (!handed.ok()) return handed.status();
  received.handed_ns = MonotonicNs();
  received.has_sum = header == kReadBack;
  absl::Status status = Prepare(*handed, received.has_sum);
  if (!status.ok()) return status;
  const auto bundle =
      Decode(request, nullptr, absl::MakeSpan(places_), DeviceTensors::kKeep);
  if (!bundle.ok()) return bundle.status();
  received.read_ns = MonotonicNs();
  for (const Destination& place : places_) {
    if (!place.used.ok()) return place.used;
  }
  for (const NamedTensor& named : handed->tensors) {
    if (named.tensor.device().is_host()) continue;
    received.on_device_bytes += named.tensor.byte_size();
  }
  if (!received.has_sum) return received;
  const absl::StatusOr<uint64_t> sum = SumAnywhere(*bundle);
  if (!sum.ok()) return sum.status();
  received.sum = *sum;
  return received;
}

absl::StatusOr<DeviceCopier> DeviceCopier::Make(const Bundle& variables,
                                                const Device& to) {
  absl::StatusOr<DeviceMemory*> memory = tensor::NeedDeviceMemory("copy");
  if (!memory.ok()) return memory.status();
  DeviceCopier copier;
  for (const NamedTensor& named : variables.tensors) {
    auto copy = AllocateLike(named.tensor, to, *memory);
    if (!copy.ok()) return copy.status();
    copier.copies_.tensors.push_back({named.name, *std::move(copy)});
  }
  return copier;
}

absl::StatusOr<uint64_t> DeviceCopier::Run(const Bundle& variables,
                                           int64_t begin_ns, Step* step) {
  std::vector<tensor::CopyToHost> to_host;
  std::vector<tensor::CopyFromHost> from_host;
  std::vector<tensor::CopyOnDevice> on_device;
  for (size_t i = 0; i < variables.tensors.size(); ++i) {
    const Tensor& from = variables.tensors[i].tensor;
    tensor::Buffer* const to = copies_.tensors[i].tensor.buffer().get();
    if (from.byte_size() == 0) continue;
    if (from.device().is_host()) {
      from_host.push_back({from.bytes().data(), from.byte_size(), to, 0});
    } else if (to->device().is_host()) {
      to_host.push_back(
          {from.buffer().get(), 0, from.byte_size(), to->mutable_data()});
    } else {
      on_device.push_back({from.buffer().get(), to, from.byte_size()});
    }
  }
  DeviceMemory* const memory = tensor::GetDeviceMemory();
  absl::Status status;
  if (!to_host.empty()) status.Update(memory->Copy(to_host));
  if (!from_host.empty()) status.Update(memory->Copy(from_host));
  if (!on_device.empty()) status.Update(memory->Copy(on_device));
  if (!status.ok()) return status;
  step->handed_us = step->read_us = step->call_us =
      (MonotonicNs() - begin_ns) / 1e3;
  return SumAnywhere(copies_);
}

}  // namespace penstock::bench
