#include "collectives/cuda/cuda_operands.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "collectives/operand_memory.h"
#include "tensor_service/dtype.h"
#include "transport/device/device.h"
#include "transport/device/kernels/reduction.h"
#include "transport/memory/bytes.h"

namespace penstock::collectives {
namespace {

using device::kernels::ElementType;
using tensor::DType;

device::abi::Address AddressOf(const void* data) {
  return reinterpret_cast<device::abi::Address>(data);
}

absl::optional<ElementType> TypeOf(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return ElementType::kF32;
    case DType::kF16:
      return ElementType::kF16;
    case DType::kBF16:
      return ElementType::kBf16;
    default:
      return absl::nullopt;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudaOperands>> CudaOperands::Open(
    device::Devices* devices, int ordinal) {
  absl::StatusOr<device::OpenDevice*> opened = devices->At(ordinal);
  if (!opened.ok()) return opened.status();
  auto reducer = device::Reducer::Create((*opened)->device.get());
  if (!reducer.ok() && !absl::IsUnimplemented(reducer.status())) {
    return reducer.status();
  }
  return absl::WrapUnique(new CudaOperands(
      devices, ordinal, *opened, reducer.ok() ? *std::move(reducer) : nullptr));
}

absl::StatusOr<bool> CudaOperands::Has(const void* address) const {
  if (address == nullptr) return false;
  const absl::StatusOr<int> owner = devices_->OrdinalOf(AddressOf(address));
  if (owner.ok() && *owner == ordinal_) return true;
  if (absl::IsInvalidArgument(owner.status())) return false;
  if (!owner.ok()) return owner.status();
  return absl::InvalidArgumentError(
      absl::StrCat("the operand is in the memory of GPU ", *owner,
                   ": add its CudaOperands to NetGroupOptions::memories"));
}

absl::Status CudaOperands::CopyToHost(const void* from, void* to,
                                      size_t bytes) {
  const device::HostCopy copy = {AddressOf(from), static_cast<char*>(to),
                                 bytes};
  return opened_->copier.ToHost({&copy, 1}, {});
}

absl::Status CudaOperands::CopyFromHost(const void* from, void* to,
                                        size_t bytes) {
  char* const source = const_cast<char*>(static_cast<const char*>(from));
  const device::HostCopy copy = {AddressOf(to), source, bytes};
  return opened_->copier.FromHost({&copy, 1}, {});
}

absl::Status CudaOperands::Copy(const void* from, void* to, size_t bytes) {
  const device::DeviceCopy copy = {AddressOf(from), AddressOf(to), bytes};
  return opened_->copier.OnDevice(opened_->device.get(), {&copy, 1}, {});
}

bool CudaOperands::CanReduce(ReduceOp op, DType dtype, const void* data) const {
  return reducer_ != nullptr && op == ReduceOp::kSum &&
         TypeOf(dtype).has_value() &&
         reinterpret_cast<uintptr_t>(data) % tensor::ElementSize(dtype) == 0;
}

absl::Status CudaOperands::Reduce(ReduceOp op, DType dtype,
                                  const void* received, bool is_right,
                                  void* data, size_t count) {
  if (CanReduce(op, dtype, data)) {
    return ReduceHere(dtype, received, is_right, data, count);
  }
  const size_t bytes = count * tensor::ElementSize(dtype);
  const absl::StatusOr<memory::Block> staged = memory::AllocateBlock(bytes);
  if (!staged.ok()) return staged.status();
  void* const here = staged->data.get();
  absl::Status status = CopyToHost(data, here, bytes);
  if (status.ok()) {
    status = HostMemory()->Reduce(op, dtype, received, is_right, here, count);
  }
  return status.ok() ? CopyFromHost(here, data, bytes) : status;
}

absl::Status CudaOperands::ReduceHere(DType dtype, const void* received,
                                      bool is_right, void* data, size_t count) {
  const size_t bytes = count * tensor::ElementSize(dtype);
  base::MutexLock lock(&mu_);
  absl::Status status = Prepare(bytes);
  if (!status.ok()) return status;
  void* const scratch = reinterpret_cast<void*>(scratch_.get());
  status = CopyFromHost(received, scratch, bytes);
  if (!status.ok()) return status;
  const void* inputs[2] = {scratch, data};
  if (is_right) std::swap(inputs[0], inputs[1]);
  device::kernels::Reduction reduction;
  reduction.type = *TypeOf(dtype);
  reduction.count = count;
  reduction.inputs = inputs;
  reduction.output = data;
  status = reducer_->Queue(reduction, stream_.get());
  if (!status.ok()) return status;
  device::Device* const device = opened_->device.get();
  const absl::StatusOr<device::Device::Entered> entered = device->Enter();
  if (!entered.ok()) return entered.status();
  status = device->Check(device->api()->EventRecord(done_.get(), stream_.get()),
                         "record an event");
  if (!status.ok()) return status;
  return device->Check(device->api()->EventSynchronize(done_.get()),
                       "wait for a reduction");
}

absl::Status CudaOperands::Prepare(size_t bytes) {
  device::Device* const device = opened_->device.get();
  if (stream_.get() == nullptr) {
    absl::StatusOr<device::Stream> stream = device::CreateStream(device);
    if (!stream.ok()) return stream.status();
    absl::StatusOr<device::Event> done = device::CreateEvent(device);
    if (!done.ok()) return done.status();
    stream_ = *std::move(stream);
    done_ = *std::move(done);
  }
  if (bytes <= scratch_bytes_) return absl::OkStatus();
  absl::StatusOr<device::DeviceBlock> block =
      device::AllocateOnDevice(device, bytes);
  if (!block.ok()) return block.status();
  scratch_ = *std::move(block);
  scratch_bytes_ = bytes;
  return absl::OkStatus();
}

absl::Status CudaOperands::Divide(DType dtype, void* data, int by,
                                  size_t count) {
  const size_t bytes = count * tensor::ElementSize(dtype);
  const absl::StatusOr<memory::Block> staged = memory::AllocateBlock(bytes);
  if (!staged.ok()) return staged.status();
  absl::Status status = CopyToHost(data, staged->data.get(), bytes);
  if (!status.ok()) return status;
  collectives::Divide(dtype, staged->data.get(), by, count);
  return CopyFromHost(staged->data.get(), data, bytes);
}

}  // namespace penstock::collectives
