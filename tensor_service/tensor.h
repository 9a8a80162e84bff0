// A dense tensor: element type, shape and shared memory.

#ifndef PENSTOCK_TENSOR_SERVICE_TENSOR_H_
#define PENSTOCK_TENSOR_SERVICE_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "grpcpp/support/slice.h"
#include "tensor_service/allocator.h"
#include "tensor_service/buffer.h"
#include "tensor_service/device.h"
#include "tensor_service/dtype.h"

namespace penstock::tensor {

// The dimensions of a tensor, outermost first. Empty for a scalar. Elements are
// in row-major order.
using Shape = absl::InlinedVector<int64_t, 4>;

// Caps the dimensions of a tensor. No framework uses more. Limits the cost of a
// peer's tensor.
inline constexpr size_t kMaxRank = 16;

// Returns the size of a tensor of this type and shape, in bytes. Returns
// INVALID_ARGUMENT, with the reason, for a negative dimension, more than
// kMaxRank dimensions, or a size of more than 63 bits.
absl::StatusOr<size_t> ByteSize(DType dtype, absl::Span<const int64_t> shape);

// Returns a readable form of type and shape: "f32[2,3]".
std::string Describe(DType dtype, absl::Span<const int64_t> shape);

// A value type over shared memory. Copying a Tensor copies a handle. Writing
// through one handle never changes the elements that another handle shows: the
// memory is copied first (copy on write). Tensor() is an f32 of shape [0].
//
// The elements may be on a device. Such a tensor can be sent and lent to other
// libraries. Functions that read or write elements return FAILED_PRECONDITION
// for such a tensor; ToHost() copies its elements.
//
// Threads may use different handles of the same memory, as with
// std::shared_ptr. Guard a handle that several threads use.
class Tensor {
 public:
  Tensor() = default;

  // Allocates uninitialised memory, aligned to Buffer::kAlignment, by
  // `allocator`; null selects DefaultAllocator(). Returns INVALID_ARGUMENT like
  // ByteSize(), and the allocator's RESOURCE_EXHAUSTED.
  static absl::StatusOr<Tensor> Allocate(DType dtype, Shape shape,
                                         Allocator* allocator = nullptr);

  // Makes a tensor of existing memory without a copy. Returns INVALID_ARGUMENT
  // unless the buffer has exactly the size that `dtype` and `shape` require.
  static absl::StatusOr<Tensor> FromBuffer(DType dtype, Shape shape,
                                           std::shared_ptr<Buffer> buffer);
  static absl::StatusOr<Tensor> FromSlice(DType dtype, Shape shape,
                                          grpc::Slice slice);

  // Makes a tensor with a copy of `values`, in memory of DefaultAllocator().
  // Returns the errors of Allocate() and FromBuffer().
  template <typename T>
  static absl::StatusOr<Tensor> Of(Shape shape, absl::Span<const T> values) {
    return CopyOf(DTypeOf<T>::kValue, std::move(shape), values.data(),
                  values.size() * sizeof(T), DefaultAllocator());
  }

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  size_t byte_size() const { return buffer_ == nullptr ? 0 : buffer_->size(); }
  size_t num_elements() const { return byte_size() / ElementSize(dtype_); }

  // Returns the size of the memory that this tensor keeps alive; see
  // Buffer::held().
  size_t held_bytes() const { return buffer_ == nullptr ? 0 : buffer_->held(); }

  // Returns the location of the elements. A tensor without a buffer is on the
  // host.
  Device device() const {
    return buffer_ == nullptr ? Device() : buffer_->device();
  }

  // Returns FAILED_PRECONDITION, with the remedy, if the elements are on a
  // device. `operation`, such as "store", names the caller's operation in the
  // message.
  absl::Status CheckOnHost(absl::string_view operation) const;

  // Returns this tensor if it is on the host, and otherwise a copy in memory of
  // `allocator`; null selects DefaultAllocator(). Blocks until the copy is
  // complete. Returns the errors of Allocate() and of DeviceMemory, and
  // FAILED_PRECONDITION without a DeviceMemory (SetDeviceMemory()).
  // Bundle::ToHost() copies several tensors in a batch.
  absl::StatusOr<Tensor> ToHost(Allocator* allocator = nullptr) const;

  // Returns this tensor if it is on `device`, and otherwise a copy there, like
  // ToHost(). Reads host memory only until it returns.
  absl::StatusOr<Tensor> ToDevice(const Device& device) const;

  // Returns a copy on `device`, even if the tensor is already there. On the
  // host, calls Copy() with `allocator`.
  absl::StatusOr<Tensor> CopyTo(const Device& device,
                                Allocator* allocator = nullptr) const;

  // Returns the raw bytes. They stay valid while this handle, or a copy of it,
  // lives and is not written through. Empty for a tensor on a device, unlike
  // byte_size().
  absl::string_view bytes() const;

  // Returns true if no other handle, call or peer uses the memory, so that
  // mutable_flat() would not copy it. After true, nobody else can begin to use
  // the memory. Returns false on a device, and in a forked child for memory of
  // its parent.
  bool IsExclusive() const;

  // Returns true if the elements are aligned for access in place, on the host
  // or on their device. The elements of a peer's tensor may start anywhere in
  // the received message.
  bool IsAligned() const;

  // Returns this tensor if IsAligned(), and otherwise a copy in aligned memory
  // of the heap, not of the default allocator: the copy is for reading.
  absl::StatusOr<Tensor> Aligned() const;

  // Returns a copy in aligned memory of `allocator`; null selects
  // DefaultAllocator(). Fails for a tensor on a device.
  absl::StatusOr<Tensor> Copy(Allocator* allocator = nullptr) const;

  // Returns this tensor if held_bytes() is at most twice its size, and
  // otherwise a copy. Call it before keeping a tensor for long, because the
  // tensor might keep a whole message from being freed. The copy is on the
  // heap, not in memory of the default allocator: long-lived copies would
  // exhaust a pool.
  absl::StatusOr<Tensor> Compact() const;

  // Returns the elements in row-major order, valid as long as bytes(). Returns
  // INVALID_ARGUMENT if T is not the element type. Returns FAILED_PRECONDITION
  // if the elements are not aligned; call Aligned() first, which may copy.
  template <typename T>
  absl::StatusOr<absl::Span<const T>> flat() const {
    absl::Status status = CheckAccess(DTypeOf<T>::kValue);
    if (!status.ok()) return status;
    return absl::Span<const T>(reinterpret_cast<const T*>(bytes().data()),
                               num_elements());
  }

  // Returns the elements for writing. First copies them to memory of
  // DefaultAllocator() if the memory is read-only, unaligned, or shared with
  // another holder. A holder is a handle, a call that still sends the memory, a
  // peer that uses it in place, or the process that this process was forked
  // from. Returns INVALID_ARGUMENT if T is not the element type, and
  // RESOURCE_EXHAUSTED if there is no memory for the copy.
  template <typename T>
  absl::StatusOr<absl::Span<T>> mutable_flat() {
    absl::Status status = MakeWritable(DTypeOf<T>::kValue);
    if (!status.ok()) return status;
    return absl::Span<T>(reinterpret_cast<T*>(MutableBytes()), num_elements());
  }

  // Returns the memory. May be null if the tensor has no elements.
  const std::shared_ptr<Buffer>& buffer() const { return buffer_; }

  // Returns Describe() of this tensor's type and shape.
  std::string ToString() const { return Describe(dtype_, shape_); }

 private:
  static absl::StatusOr<Tensor> CopyOf(DType dtype, Shape shape,
                                       const void* data, size_t size,
                                       Allocator* allocator);
  absl::Status CheckAccess(DType wanted) const;
  absl::Status MakeWritable(DType wanted);
  char* MutableBytes();

  DType dtype_ = DType::kF32;
  Shape shape_ = {0};
  std::shared_ptr<Buffer> buffer_;
};

struct NamedTensor {
  std::string name;  // UTF-8
  Tensor tensor;
};

// The tensors of one message, in order. A name may repeat; the receiver defines
// the meaning.
struct Bundle {
  std::vector<NamedTensor> tensors;

  // Returns the bytes of all tensors' elements.
  size_t byte_size() const;
  // Returns a bundle with the result of Tensor::ToHost() for each tensor. Makes
  // all copies in a batch, and waits for the devices once.
  absl::StatusOr<Bundle> ToHost(Allocator* allocator = nullptr) const;
  // Returns the error of Tensor::CheckOnHost() for the first tensor that fails,
  // with the tensor's name.
  absl::Status CheckOnHost(absl::string_view operation) const;
  // Returns a bundle with the result of Tensor::Compact() for each tensor.
  absl::StatusOr<Bundle> Compact() const;
  // Returns the last tensor with this name, or null. The tensor is part of the
  // bundle. Takes linear time.
  const Tensor* Find(absl::string_view name) const;
};

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_TENSOR_H_
