#include "tensor_service/tensor.h"

#include <atomic>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace penstock::tensor {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "tensor data is little-endian on the wire and used in place");

namespace {

Allocator* Chosen(Allocator* allocator) {
  return allocator == nullptr ? DefaultAllocator() : allocator;
}

}  // namespace

absl::StatusOr<size_t> ByteSize(DType dtype, absl::Span<const int64_t> shape) {
  if (shape.size() > kMaxRank) {
    return absl::InvalidArgumentError(absl::StrCat(
        "tensor has ", shape.size(), " dimensions; at most ", kMaxRank));
  }
  // Looks for zero dimensions first: [0, huge, huge] has no elements.
  bool empty = false;
  for (int64_t dimension : shape) {
    if (dimension < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "tensor ", Describe(dtype, shape), " has a negative dimension"));
    }
    empty = empty || dimension == 0;
  }
  if (empty) return 0;
  int64_t bytes = static_cast<int64_t>(ElementSize(dtype));
  for (int64_t dimension : shape) {
    if (__builtin_mul_overflow(bytes, dimension, &bytes)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "tensor ", Describe(dtype, shape), " overflows 63 bits of size"));
    }
  }
  return static_cast<size_t>(bytes);
}

std::string Describe(DType dtype, absl::Span<const int64_t> shape) {
  return absl::StrCat(Name(dtype), "[", absl::StrJoin(shape, ","), "]");
}

absl::StatusOr<Tensor> Tensor::Allocate(DType dtype, Shape shape,
                                        Allocator* allocator) {
  absl::StatusOr<size_t> size = ByteSize(dtype, shape);
  if (!size.ok()) return size.status();
  absl::StatusOr<std::shared_ptr<Buffer>> buffer =
      Chosen(allocator)->Allocate(*size);
  if (!buffer.ok()) return buffer.status();
  return FromBuffer(dtype, std::move(shape), *std::move(buffer));
}

absl::StatusOr<Tensor> Tensor::FromBuffer(DType dtype, Shape shape,
                                          std::shared_ptr<Buffer> buffer) {
  absl::StatusOr<size_t> size = ByteSize(dtype, shape);
  if (!size.ok()) return size.status();
  size_t have = buffer == nullptr ? 0 : buffer->size();
  if (have != *size) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor ", Describe(dtype, shape), " needs ", *size,
                     " bytes of data and has ", have));
  }
  Tensor tensor;
  tensor.dtype_ = dtype;
  tensor.shape_ = std::move(shape);
  tensor.buffer_ = std::move(buffer);
  return tensor;
}

absl::StatusOr<Tensor> Tensor::FromSlice(DType dtype, Shape shape,
                                         grpc::Slice slice) {
  return FromBuffer(dtype, std::move(shape),
                    Buffer::FromSlice(std::move(slice)));
}

absl::StatusOr<Tensor> Tensor::CopyOf(DType dtype, Shape shape,
                                      const void* data, size_t size,
                                      Allocator* allocator) {
  absl::StatusOr<std::shared_ptr<Buffer>> buffer = allocator->Allocate(size);
  if (!buffer.ok()) return buffer.status();
  if (size > 0) memcpy((*buffer)->mutable_data(), data, size);
  return FromBuffer(dtype, std::move(shape), *std::move(buffer));
}

absl::string_view Tensor::bytes() const {
  if (!device().is_host() || buffer_ == nullptr) return absl::string_view();
  return absl::string_view(buffer_->data(), buffer_->size());
}

bool Tensor::IsAligned() const {
  if (byte_size() == 0) return true;
  const uintptr_t at = device().is_host()
                           ? reinterpret_cast<uintptr_t>(buffer_->data())
                           : buffer_->device_address();
  return at % ElementSize(dtype_) == 0;
}

absl::StatusOr<Tensor> Tensor::Aligned() const {
  absl::Status status = CheckOnHost("read");
  if (!status.ok()) return status;
  return IsAligned() ? *this : Copy(HeapAllocator());
}

absl::StatusOr<Tensor> Tensor::Copy(Allocator* allocator) const {
  absl::Status status = CheckOnHost("copy");
  if (!status.ok()) return status;
  return CopyOf(dtype_, shape_, bytes().data(), byte_size(), Chosen(allocator));
}

absl::StatusOr<Tensor> Tensor::Compact() const {
  absl::Status status = CheckOnHost("keep");
  if (!status.ok()) return status;
  return held_bytes() / 2 <= byte_size() ? *this : Copy(HeapAllocator());
}

absl::Status Tensor::CheckOnHost(absl::string_view operation) const {
  if (device().is_host()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      operation, " tensor ", ToString(), ": its elements lie on ",
      device().ToString(), ", where the CPU cannot read them; call ToHost()"));
}

absl::Status Tensor::CheckAccess(DType wanted) const {
  if (dtype_ != wanted) {
    return absl::InvalidArgumentError(absl::StrCat(
        "read tensor ", ToString(), " as ", Name(wanted), " elements"));
  }
  absl::Status status = CheckOnHost("access");
  if (!status.ok()) return status;
  if (!IsAligned()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "tensor ", ToString(), " is not aligned; call Aligned() first"));
  }
  return absl::OkStatus();
}

bool Tensor::IsExclusive() const {
  if (byte_size() == 0) return true;
  if (!device().is_host()) return false;
  if (!buffer_->writable() || buffer_.use_count() != 1 || !IsAligned() ||
      buffer_->IsInherited()) {
    return false;
  }
  // Orders our writes after the last reads of the previous holder. use_count()
  // is only a relaxed load.
  std::atomic_thread_fence(std::memory_order_acquire);
#if defined(__SANITIZE_THREAD__)
  // Copies the handle for tsan, which does not know fences, but knows the
  // effect of a copy on the count.
  const std::shared_ptr<Buffer> copy = buffer_;
#endif
  return true;
}

absl::Status Tensor::MakeWritable(DType wanted) {
  if (dtype_ != wanted) return CheckAccess(wanted);
  if (IsExclusive()) return absl::OkStatus();
  absl::StatusOr<Tensor> copy = Copy();
  if (!copy.ok()) return copy.status();
  *this = *std::move(copy);
  return absl::OkStatus();
}

char* Tensor::MutableBytes() {
  return buffer_ == nullptr ? nullptr : buffer_->mutable_data();
}

size_t Bundle::byte_size() const {
  size_t bytes = 0;
  for (const NamedTensor& named : tensors) bytes += named.tensor.byte_size();
  return bytes;
}

absl::Status Bundle::CheckOnHost(absl::string_view operation) const {
  for (const NamedTensor& named : tensors) {
    if (named.tensor.device().is_host()) continue;
    return named.tensor.CheckOnHost(
        absl::StrCat(operation, " \"", named.name, "\","));
  }
  return absl::OkStatus();
}

absl::StatusOr<Bundle> Bundle::Compact() const {
  Bundle compact;
  for (const NamedTensor& named : tensors) {
    absl::StatusOr<Tensor> tensor = named.tensor.Compact();
    if (!tensor.ok()) return tensor.status();
    compact.tensors.push_back({named.name, *std::move(tensor)});
  }
  return compact;
}

const Tensor* Bundle::Find(absl::string_view name) const {
  for (auto it = tensors.rbegin(); it != tensors.rend(); ++it) {
    if (it->name == name) return &it->tensor;
  }
  return nullptr;
}

}  // namespace penstock::tensor
