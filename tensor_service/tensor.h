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

// The dimensions of a tensor, outermost first. Empty for a scalar. Elements lie
// in row-major order.
using Shape = absl::InlinedVector<int64_t, 4>;

// The most dimensions of a tensor. More than any framework makes; bounds what a
// peer's tensor can cost us.
inline constexpr size_t kMaxRank = 16;

// Returns the bytes of a tensor of that type and shape. Returns
// INVALID_ARGUMENT, which says which, for a negative dimension, more than
// kMaxRank dimensions, or a size of more than 63 bits.
absl::StatusOr<size_t> ByteSize(DType dtype, absl::Span<const int64_t> shape);

// Returns a type and shape for people: "f32[2,3]".
std::string Describe(DType dtype, absl::Span<const int64_t> shape);

// A value type over shared memory. Copying a Tensor copies a handle. Writing
// through one handle never changes what another sees: the memory is copied
// first (copy on write). A Tensor() is an f32 of shape [0].
//
// The elements may lie on a device. They can be sent from there, and lent to
// other libraries; what reads or writes them here returns FAILED_PRECONDITION,
// which says so: ToHost() copies them.
//
// Thread safety is that of std::shared_ptr: threads may use different handles
// of the same memory. Guard a handle that several threads use.
class Tensor {
 public:
  Tensor() = default;

  // Allocates memory, aligned to Buffer::kAlignment and not initialised. It
  // comes from `allocator`; null is DefaultAllocator(). Returns
  // INVALID_ARGUMENT as ByteSize() does, and the allocator's
  // RESOURCE_EXHAUSTED.
  static absl::StatusOr<Tensor> Allocate(DType dtype, Shape shape,
                                         Allocator* allocator = nullptr);

  // Makes a tensor of existing memory. Copies nothing. Returns INVALID_ARGUMENT
  // unless the buffer has exactly the bytes that `dtype` and `shape` need.
  static absl::StatusOr<Tensor> FromBuffer(DType dtype, Shape shape,
                                           std::shared_ptr<Buffer> buffer);
  static absl::StatusOr<Tensor> FromSlice(DType dtype, Shape shape,
                                          grpc::Slice slice);

  // Makes a tensor of a copy of `values`, in memory of DefaultAllocator().
  // Returns errors as Allocate() and FromBuffer() do.
  template <typename T>
  static absl::StatusOr<Tensor> Of(Shape shape, absl::Span<const T> values) {
    return CopyOf(DTypeOf<T>::kValue, std::move(shape), values.data(),
                  values.size() * sizeof(T), DefaultAllocator());
  }

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  size_t byte_size() const { return buffer_ == nullptr ? 0 : buffer_->size(); }
  size_t num_elements() const { return byte_size() / ElementSize(dtype_); }

  // Returns how much memory it keeps from being freed; see Buffer::held().
  size_t held_bytes() const { return buffer_ == nullptr ? 0 : buffer_->held(); }

  // Returns where the elements lie. Without elements the host, unless a buffer
  // says otherwise.
  Device device() const {
    return buffer_ == nullptr ? Device() : buffer_->device();
  }

  // Returns FAILED_PRECONDITION, with the remedy, if the elements lie on a
  // device. `operation`, such as "store", says for people what needs them here.
  absl::Status CheckOnHost(absl::string_view operation) const;

  // Returns this tensor if it is on the host, and else a copy in memory of
  // `allocator`; null is DefaultAllocator(). Blocks until that is made. Returns
  // the errors of Allocate() and of DeviceMemory, and FAILED_PRECONDITION if
  // there is none: see SetDeviceMemory(). Bundle::ToHost() copies several at
  // once.
  absl::StatusOr<Tensor> ToHost(Allocator* allocator = nullptr) const;

  // Returns this tensor if it is on `device`, and else a copy there, as
  // ToHost() does. Host memory is read until this returns.
  absl::StatusOr<Tensor> ToDevice(const Device& device) const;

  // Returns a copy on `device` even if it is there already. On the host that is
  // Copy(), to memory of `allocator`.
  absl::StatusOr<Tensor> CopyTo(const Device& device,
                                Allocator* allocator = nullptr) const;

  // Returns the raw bytes. They stay valid while this handle, or a copy of it,
  // lives and is not written through. Empty on a device, unlike byte_size().
  absl::string_view bytes() const;

  // Returns whether no other handle, call or peer uses the memory, and
  // mutable_flat() would not copy it. Nobody else can begin to use it. False on
  // a device, and in a forked child for what its parent had made.
  bool IsExclusive() const;

  // Returns whether the elements can be accessed in place. A tensor of a peer's
  // may start anywhere in the received message. On a device, whether they are
  // aligned there.
  bool IsAligned() const;

  // Returns this tensor if IsAligned(), and else a copy in aligned memory of
  // the heap: it is for reading, and needs no better memory.
  absl::StatusOr<Tensor> Aligned() const;

  // Returns a copy of the tensor in aligned memory of its own, from
  // `allocator`; null is DefaultAllocator(). Not of one on a device.
  absl::StatusOr<Tensor> Copy(Allocator* allocator = nullptr) const;

  // Returns this tensor if held_bytes() is at most twice its size, and else a
  // copy. Call it before keeping a tensor for long, which might keep a whole
  // message from being freed. The copy is on the heap, whatever the default
  // allocator: what is kept for long would exhaust a pool.
  absl::StatusOr<Tensor> Compact() const;

  // Returns the elements in row-major order, valid as long as bytes(). Returns
  // INVALID_ARGUMENT if T is another element type, and FAILED_PRECONDITION
  // unless IsAligned(): call Aligned() first, which may copy.
  template <typename T>
  absl::StatusOr<absl::Span<const T>> flat() const {
    absl::Status status = CheckAccess(DTypeOf<T>::kValue);
    if (!status.ok()) return status;
    return absl::Span<const T>(reinterpret_cast<const T*>(bytes().data()),
                               num_elements());
  }

  // Returns the elements for writing. Copies them first if the memory is
  // read-only, unaligned or shared with another holder: a handle, a call that
  // still sends it, a peer that uses it in place, or the process that this one
  // was forked from. The copy is in memory of
  // DefaultAllocator(), as the tensor may be sent again. Returns
  // INVALID_ARGUMENT if T is another element type, and RESOURCE_EXHAUSTED if
  // there is no memory for the copy.
  template <typename T>
  absl::StatusOr<absl::Span<T>> mutable_flat() {
    absl::Status status = MakeWritable(DTypeOf<T>::kValue);
    if (!status.ok()) return status;
    return absl::Span<T>(reinterpret_cast<T*>(MutableBytes()), num_elements());
  }

  // Returns the memory. May be null if there are no elements.
  const std::shared_ptr<Buffer>& buffer() const { return buffer_; }

  // Returns Describe() of it.
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

// The tensors of one message, in order. A name may repeat; the receiver decides
// what that means.
struct Bundle {
  std::vector<NamedTensor> tensors;

  // Returns the bytes of all tensors' elements.
  size_t byte_size() const;
  // Returns a bundle of what Tensor::ToHost() returns for each tensor. All
  // copies are made at once, so that this waits for the devices once.
  absl::StatusOr<Bundle> ToHost(Allocator* allocator = nullptr) const;
  // Returns what Tensor::CheckOnHost() does, of the first tensor that fails it,
  // and names that.
  absl::Status CheckOnHost(absl::string_view operation) const;
  // Returns a bundle of what Tensor::Compact() returns for each tensor.
  absl::StatusOr<Bundle> Compact() const;
  // Returns the last tensor of that name, or null. The tensor is part of the
  // bundle. Takes linear time.
  const Tensor* Find(absl::string_view name) const;
};

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_TENSOR_H_
