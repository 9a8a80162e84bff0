#include "tensor_service/dlpack.h"

#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tensor_service/device_memory.h"

namespace penstock::tensor {
namespace {

using Strides = std::vector<int64_t>;  // in elements, as in DLPack

struct TypeRow {
  DType dtype;
  uint8_t code;
  uint8_t bits;
};

constexpr TypeRow kTypes[] = {
    {DType::kF32, kDLFloat, 32}, {DType::kF64, kDLFloat, 64},
    {DType::kF16, kDLFloat, 16}, {DType::kBF16, kDLBfloat, 16},
    {DType::kInt8, kDLInt, 8},   {DType::kInt16, kDLInt, 16},
    {DType::kInt32, kDLInt, 32}, {DType::kInt64, kDLInt, 64},
    {DType::kUint8, kDLUInt, 8}, {DType::kBool, kDLBoolCode, 8},
};

DLDataType TypeOf(DType dtype) {
  for (const TypeRow& row : kTypes) {
    if (row.dtype == dtype) return {row.code, row.bits, /*lanes=*/1};
  }
  return {kDLOpaqueHandle, 0, 1};  // unreachable: kTypes has every DType
}

absl::Status Refused(absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("import DLPack tensor: ", why));
}

absl::StatusOr<DType> DTypeFrom(const DLDataType& type) {
  for (const TypeRow& row : kTypes) {
    if (type.code == row.code && type.bits == row.bits && type.lanes == 1) {
      return row.dtype;
    }
  }
  return Refused(absl::StrCat(
      "no element type has code ", type.code, ", ", type.bits, " bits and ",
      type.lanes, " lanes; convert it to one of float16, float32, float64, ",
      "bfloat16, int8, int16, int32, int64, uint8 or bool first"));
}

absl::StatusOr<Shape> ShapeOf(const DLTensor& tensor) {
  if (tensor.ndim < 0 || static_cast<size_t>(tensor.ndim) > kMaxRank) {
    return Refused(absl::StrCat("it has ", tensor.ndim, " dimensions; at most ",
                                kMaxRank, ", so reshape it first"));
  }
  if (tensor.ndim > 0 && tensor.shape == nullptr) {
    return Refused("its shape is null");
  }
  return absl::StatusOr<Shape>(absl::in_place, tensor.shape,
                               tensor.shape + tensor.ndim);
}

// Returns the strides of elements in row-major order. For an empty tensor
// returns arbitrary strides, because the products might overflow.
Strides RowMajor(absl::Span<const int64_t> shape, bool is_empty) {
  Strides strides(shape.size(), 1);
  if (is_empty) return strides;
  for (size_t i = shape.size(); i > 1; --i) {
    strides[i - 2] = strides[i - 1] * shape[i - 1];
  }
  return strides;
}

// Returns true if, from dimension `from` on, `strides` are those of row-major
// order. Ignores the stride of a dimension of one element.
bool IsPacked(absl::Span<const int64_t> shape,
              absl::Span<const int64_t> strides, size_t from) {
  const Strides packed = RowMajor(shape, /*is_empty=*/false);
  for (size_t i = from; i < shape.size(); ++i) {
    if (shape[i] != 1 && strides[i] != packed[i]) return false;
  }
  return true;
}

// Adds the distance from the first to the last element of a dimension, in
// bytes, to `reach`. Returns false on overflow.
bool AddReach(int64_t dimension, int64_t stride, int64_t element,
              int64_t* reach) {
  int64_t bytes = 0;
  return !__builtin_mul_overflow(dimension - 1, stride, &bytes) &&
         !__builtin_mul_overflow(bytes, element, &bytes) &&
         !__builtin_add_overflow(*reach, bytes, reach);
}

// Returns an error if an element would be outside the address space.
absl::Status CheckReach(const DLTensor& tensor, DType dtype,
                        absl::Span<const int64_t> shape,
                        absl::Span<const int64_t> strides) {
  const auto element = static_cast<int64_t>(ElementSize(dtype));
  int64_t below = 0;
  int64_t above = element;
  bool ok = true;
  for (size_t i = 0; i < shape.size(); ++i) {
    ok = ok && AddReach(shape[i], strides[i], element,
                        strides[i] < 0 ? &below : &above);
  }
  const auto data = reinterpret_cast<uintptr_t>(tensor.data);
  uintptr_t first = 0;
  uintptr_t unused = 0;
  ok = ok && !__builtin_add_overflow(data, tensor.byte_offset, &first) &&
       !__builtin_add_overflow(first, below, &unused) &&
       !__builtin_add_overflow(first, above, &unused);
  if (ok) return absl::OkStatus();
  return Refused("its strides or its byte_offset lead out of the memory");
}

// Copies elements of kSize bytes in row-major order to `to`, and returns the
// end of the copy. From dimension `packed` on, the elements are contiguous.
template <size_t kSize>
char* Pack(const char* from, absl::Span<const int64_t> shape,
           absl::Span<const int64_t> strides, size_t packed, char* to) {
  if (packed == 0) {
    size_t bytes = kSize;
    for (int64_t dimension : shape) bytes *= static_cast<size_t>(dimension);
    memcpy(to, from, bytes);
    return to + bytes;
  }
  // Ignores the stride of a dimension of one element, which is meaningless and
  // may be huge.
  const int64_t step =
      shape[0] == 1 ? 0 : strides[0] * static_cast<int64_t>(kSize);
  if (shape.size() == 1) {
    for (int64_t i = 0; i < shape[0]; ++i, to += kSize) {
      memcpy(to, from + i * step, kSize);
    }
    return to;
  }
  for (int64_t i = 0; i < shape[0]; ++i) {
    to = Pack<kSize>(from + i * step, shape.subspan(1), strides.subspan(1),
                     packed - 1, to);
  }
  return to;
}

absl::StatusOr<Tensor> Packed(const char* from, DType dtype, const Shape& shape,
                              const Strides& strides, Allocator* allocator) {
  absl::StatusOr<Tensor> tensor = Tensor::Allocate(dtype, shape, allocator);
  if (!tensor.ok()) return tensor;
  size_t packed = 0;
  while (!IsPacked(shape, strides, packed)) ++packed;
  char* const to = tensor->buffer()->mutable_data();
  switch (ElementSize(dtype)) {
    case 1:
      Pack<1>(from, shape, strides, packed, to);
      break;
    case 2:
      Pack<2>(from, shape, strides, packed, to);
      break;
    case 4:
      Pack<4>(from, shape, strides, packed, to);
      break;
    default:
      Pack<8>(from, shape, strides, packed, to);
      break;
  }
  return tensor;
}

absl::Status RefusedStrides(const Device& device) {
  return Refused(absl::StrCat(
      "its elements on ", device.ToString(), " do not lie in row-major order ",
      "without gaps; copy them so there first, in PyTorch by ",
      "tensor.contiguous()"));
}

// Blocks until the CPU may read pinned memory of a producer.
absl::Status AwaitOnHost(const std::shared_ptr<const DeviceEvent>& ready) {
  if (ready == nullptr) return absl::OkStatus();
  absl::StatusOr<DeviceMemory*> memory =
      NeedDeviceMemory("await pinned memory of DLPack");
  return memory.ok() ? (*memory)->Await(*ready) : memory.status();
}

void Delete(DLManagedTensor* managed) {
  if (managed->deleter != nullptr) managed->deleter(managed);
}

// The description of a producer's tensor, in this package's terms.
struct Description {
  Device device;
  DType dtype = {};
  Shape shape;
  Strides strides;
  size_t bytes = 0;
  bool is_packed = true;  // in row-major order without gaps
};

// Returns the description, or an error if the tensor cannot be taken.
absl::StatusOr<Description> DescriptionOf(const DLTensor& lent) {
  absl::StatusOr<Device> device = DeviceFromDLPack(lent.device);
  if (!device.ok()) return device.status();
  absl::StatusOr<DType> dtype = DTypeFrom(lent.dtype);
  if (!dtype.ok()) return dtype.status();
  absl::StatusOr<Shape> shape = ShapeOf(lent);
  if (!shape.ok()) return shape.status();
  absl::StatusOr<size_t> bytes = ByteSize(*dtype, *shape);
  if (!bytes.ok()) return Refused(bytes.status().message());
  if (*bytes > 0 && lent.data == nullptr) {
    return Refused(absl::StrCat("its memory is null, and ",
                                Describe(*dtype, *shape), " has elements"));
  }
  Description of;
  of.device = *device;
  of.dtype = *dtype;
  of.shape = *shape;
  of.bytes = *bytes;
  const bool is_empty = of.bytes == 0;
  of.strides = is_empty || lent.strides == nullptr
                   ? RowMajor(of.shape, is_empty)
                   : Strides(lent.strides, lent.strides + lent.ndim);
  if (is_empty) return of;
  absl::Status status = CheckReach(lent, of.dtype, of.shape, of.strides);
  if (!status.ok()) return status;
  of.is_packed = IsPacked(of.shape, of.strides, 0);
  return of;
}

absl::StatusOr<Tensor> FromDevice(DLManagedTensor* managed,
                                  const Description& of,
                                  std::shared_ptr<const DeviceEvent> ready) {
  if (!of.is_packed) return RefusedStrides(of.device);
  const DLTensor& lent = managed->dl_tensor;
  const auto first = reinterpret_cast<uintptr_t>(lent.data) + lent.byte_offset;
  return Tensor::FromBuffer(
      of.dtype, of.shape,
      Buffer::WrapDevice(
          of.device, of.bytes == 0 ? 0 : first, of.bytes,
          /*writable=*/false, [managed] { Delete(managed); },
          std::move(ready)));
}

absl::StatusOr<Tensor> FromHost(
    DLManagedTensor* managed, const Description& of, Allocator* allocator,
    const std::shared_ptr<const DeviceEvent>& ready) {
  const bool is_empty = of.bytes == 0;
  absl::Status status;
  if (!is_empty) status = AwaitOnHost(ready);
  if (!status.ok()) return status;
  const DLTensor& lent = managed->dl_tensor;
  char* const first = static_cast<char*>(lent.data) + lent.byte_offset;
  if (of.is_packed) {
    return Tensor::FromBuffer(
        of.dtype, of.shape,
        Buffer::Wrap(is_empty ? nullptr : first, of.bytes, /*writable=*/false,
                     [managed] { Delete(managed); }));
  }
  absl::StatusOr<Tensor> packed =
      Packed(first, of.dtype, of.shape, of.strides, allocator);
  if (packed.ok()) Delete(managed);
  return packed;
}

// A tensor that was lent by DLPack, and the arrays that its description refers
// to.
struct Loan {
  Tensor tensor;
  Shape shape;
  Strides strides;
  DLManagedTensor managed;
};

void* AddressOf(Buffer& buffer) {
  return buffer.device().is_host()
             ? static_cast<void*>(buffer.mutable_data())
             : reinterpret_cast<void*>(buffer.device_address());
}

void EndLoan(DLManagedTensor* managed) {
  delete static_cast<Loan*>(managed->manager_ctx);
}

}  // namespace

DLDevice DLPackDeviceOf(const Tensor& tensor) {
  const Device device = tensor.device();
  switch (device.kind) {
    case Device::Kind::kHost:
      break;
    case Device::Kind::kCuda:
      return {kDLCUDA, device.index};
  }
  return {kDLCPU, 0};
}

absl::StatusOr<Device> DeviceFromDLPack(const DLDevice& device) {
  switch (device.device_type) {
    case kDLCPU:
    case kDLCUDAHost:
    case kDLROCMHost:
      return Device();
    case kDLCUDA:
    case kDLCUDAManaged:
      if (device.device_id < 0) break;
      return Device{Device::Kind::kCuda, device.device_id};
    default:
      break;
  }
  return Refused(absl::StrCat(
      "it is in the memory of device ", static_cast<int>(device.device_type),
      ":", device.device_id, " (DLPack's number), and Penstock sends from the ",
      "CPU's and from CUDA's; copy it there first, in PyTorch by "
      "tensor.cpu()"));
}

absl::StatusOr<DLManagedTensor*> ToDLPack(const Tensor& tensor) {
  const bool is_here = tensor.device().is_host();
  absl::StatusOr<Tensor> aligned = is_here ? tensor.Aligned() : tensor;
  if (!aligned.ok()) return aligned.status();
  auto loan = std::make_unique<Loan>();
  loan->tensor = *std::move(aligned);
  loan->shape = tensor.shape();
  const bool is_empty = tensor.byte_size() == 0;
  loan->strides = RowMajor(tensor.shape(), is_empty);
  loan->managed = {};
  DLTensor& lent = loan->managed.dl_tensor;
  if (!is_empty) lent.data = AddressOf(*loan->tensor.buffer());
  lent.device = DLPackDeviceOf(tensor);
  lent.ndim = static_cast<int>(loan->shape.size());
  lent.dtype = TypeOf(tensor.dtype());
  lent.shape = loan->shape.data();
  lent.strides = loan->strides.data();
  loan->managed.manager_ctx = loan.get();
  loan->managed.deleter = EndLoan;
  return &loan.release()->managed;
}

absl::StatusOr<Tensor> FromDLPack(DLManagedTensor* managed,
                                  Allocator* allocator,
                                  std::shared_ptr<const DeviceEvent> ready) {
  if (managed == nullptr) return Refused("it is null");
  absl::StatusOr<Description> of = DescriptionOf(managed->dl_tensor);
  if (!of.ok()) return of.status();
  return of->device.is_host() ? FromHost(managed, *of, allocator, ready)
                              : FromDevice(managed, *of, std::move(ready));
}

}  // namespace penstock::tensor
