// A dense tensor: element type, shape and shared memory.

#ifndef PENSTOCK_TENSOR_SERVICE_TENSOR_H_
#define PENSTOCK_TENSOR_SERVICE_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "grpcpp/support/slice.h"
#include "tensor_service/buffer.h"
#include "tensor_service/dtype.h"

namespace penstock::tensor {

// Row-major, outermost dimension first; empty for a scalar.
using Shape = std::vector<int64_t>;

// More dimensions than any framework makes; bounds what a peer can cost us.
inline constexpr size_t kMaxRank = 16;

// Bytes of a tensor of that type and shape. INVALID_ARGUMENT names a negative
// dimension, a rank above kMaxRank, or a product that overflows 63 bits.
absl::StatusOr<size_t> ByteSize(DType dtype, absl::Span<const int64_t> shape);

// "f32[2,3]".
std::string Describe(DType dtype, absl::Span<const int64_t> shape);

// A value type over shared memory: copying a Tensor copies a handle, and
// writing through one handle never changes what another sees (copy on write).
// A default-made Tensor is an f32 of shape [0].
//
// Thread safety: like std::shared_ptr. Different handles may be used from
// different threads; one handle needs the caller's own lock.
class Tensor {
 public:
  Tensor() = default;

  // New memory of unspecified content, aligned to Buffer::kAlignment.
  static absl::StatusOr<Tensor> Allocate(DType dtype, Shape shape);

  // Over existing memory, nothing copied. INVALID_ARGUMENT unless the buffer
  // has exactly the bytes that `dtype` and `shape` need.
  static absl::StatusOr<Tensor> FromBuffer(DType dtype, Shape shape,
                                           std::shared_ptr<Buffer> buffer);
  static absl::StatusOr<Tensor> FromSlice(DType dtype, Shape shape,
                                          grpc::Slice slice);

  // A copy of `values`.
  template <typename T>
  static absl::StatusOr<Tensor> Of(Shape shape, absl::Span<const T> values) {
    return CopyOf(DTypeOf<T>::kValue, std::move(shape), values.data(),
                  values.size() * sizeof(T));
  }

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  size_t byte_size() const { return buffer_ == nullptr ? 0 : buffer_->size(); }
  size_t num_elements() const { return byte_size() / ElementSize(dtype_); }

  // How much memory it keeps from being freed, see Buffer::held().
  size_t held_bytes() const { return buffer_ == nullptr ? 0 : buffer_->held(); }

  // The raw bytes, valid as long as this or a copied handle lives unwritten.
  absl::string_view bytes() const;

  // Whether the memory suits direct access by element. Tensors that a peer
  // sent may start anywhere in a received message.
  bool IsAligned() const;

  // This tensor where IsAligned(), else a copy in aligned memory.
  absl::StatusOr<Tensor> Aligned() const;

  // The same elements in memory of their own, aligned.
  absl::StatusOr<Tensor> Copy() const;

  // This tensor where it holds at most twice its bytes, else a copy: for who
  // keeps a tensor for long, and its message would stay with it.
  absl::StatusOr<Tensor> Compact() const;

  // The elements in row-major order, valid like bytes(). INVALID_ARGUMENT for
  // another element type, FAILED_PRECONDITION unless IsAligned(): Aligned()
  // mends that, at the price of a copy.
  template <typename T>
  absl::StatusOr<absl::Span<const T>> flat() const {
    absl::Status status = CheckAccess(DTypeOf<T>::kValue);
    if (!status.ok()) return status;
    return absl::Span<const T>(reinterpret_cast<const T*>(bytes().data()),
                               num_elements());
  }

  // The elements for writing. Copies them first where the memory is read-only,
  // unaligned, or held by anybody else: another handle, or a call in flight.
  template <typename T>
  absl::StatusOr<absl::Span<T>> mutable_flat() {
    absl::Status status = MakeWritable(DTypeOf<T>::kValue);
    if (!status.ok()) return status;
    return absl::Span<T>(reinterpret_cast<T*>(MutableBytes()), num_elements());
  }

  // The memory, for a slice that refers to it; null for no elements at all.
  const std::shared_ptr<Buffer>& buffer() const { return buffer_; }

  // "f32[2,3]".
  std::string ToString() const { return Describe(dtype_, shape_); }

 private:
  static absl::StatusOr<Tensor> CopyOf(DType dtype, Shape shape,
                                       const void* data, size_t size);
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

// What one message carries, in order. Names may repeat here; what that means
// is the receiver's affair.
struct Bundle {
  std::vector<NamedTensor> tensors;

  // The payload alone.
  size_t byte_size() const;
  // The same, each tensor as Tensor::Compact().
  absl::StatusOr<Bundle> Compact() const;
  // The last tensor of that name, null if there is none. Linear.
  const Tensor* Find(absl::string_view name) const;
};

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_TENSOR_H_
