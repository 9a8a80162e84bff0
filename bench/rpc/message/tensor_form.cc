#include "bench/rpc/message/tensor_form.h"

#include <atomic>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/rpc/message/device_message.h"
#include "penstock/allocator.h"
#include "tensor_service/allocator.h"
#include "tensor_service/codec.h"
#include "tensor_service/pool_allocator.h"
#include "tensor_service/tensor.h"

namespace penstock {
namespace bench {
namespace {

// The maker of device messages, or null if messages are on the host.
std::atomic<DeviceMessages*> on_device{nullptr};

absl::Span<const uint8_t> AsSpan(absl::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

absl::StatusOr<tensor::Tensor> MakeTensor(size_t bytes, size_t offset,
                                          WritePart write) {
  const auto size = static_cast<int64_t>(bytes);
  if (DeviceMessages* const device = on_device) {
    auto buffer = device->MakeBuffer(bytes, offset, write);
    if (!buffer.ok()) return buffer.status();
    return tensor::Tensor::FromBuffer(tensor::DType::kUint8, {size},
                                      *std::move(buffer));
  }
  auto tensor = tensor::Tensor::Allocate(tensor::DType::kUint8, {size});
  if (!tensor.ok()) return tensor;
  write({tensor->mutable_flat<uint8_t>()->data(), bytes}, offset);
  return tensor;
}

}  // namespace

absl::Status CheckTensorForm() { return absl::OkStatus(); }

void PutTensorsIntoPool() {
  tensor::SetDefaultAllocator(tensor::PoolAllocator<Allocator>());
}

absl::StatusOr<grpc::ByteBuffer> MakeTensors(const BufferSizes& parts,
                                             WritePart write) {
  tensor::Bundle bundle;
  size_t offset = 0;
  for (size_t bytes : parts) {
    auto tensor = MakeTensor(bytes, offset, write);
    if (!tensor.ok()) return tensor.status();
    offset += bytes;
    bundle.tensors.push_back(
        {absl::StrCat("payload", bundle.tensors.size()), *std::move(tensor)});
  }
  return tensor::Encode(bundle);
}

absl::Status ReadTensors(const grpc::ByteBuffer& message, ReadPart read) {
  const absl::StatusOr<tensor::Bundle> bundle = tensor::Decode(message);
  if (!bundle.ok()) return absl::DataLossError(bundle.status().message());
  if (bundle->tensors.empty()) return absl::DataLossError("no tensor");
  for (const auto& named : bundle->tensors) read(AsSpan(named.tensor.bytes()));
  return absl::OkStatus();
}

void SetMessagesOnDevice(const tensor::Device& device) {
  on_device = new DeviceMessages(device);
}

bool MessagesAreOnDevice() { return on_device != nullptr; }

absl::StatusOr<grpc::ByteBuffer> MakeOnDevice(const BufferSizes& parts,
                                              WritePart write) {
  return on_device.load()->Make(parts, write);
}

absl::Status ReadFromDevice(const grpc::ByteBuffer& message, ReadPart read) {
  return on_device.load()->ReadAll(message, read);
}

}  // namespace bench
}  // namespace penstock
