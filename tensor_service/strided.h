// Tensors whose elements are not contiguous: a column of a matrix, a transposed
// matrix, every second row.

#ifndef PENSTOCK_TENSOR_SERVICE_STRIDED_H_
#define PENSTOCK_TENSOR_SERVICE_STRIDED_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "grpcpp/support/slice.h"
#include "tensor_service/allocator.h"
#include "tensor_service/buffer.h"
#include "tensor_service/tensor.h"

namespace penstock::tensor {

// A read-only view of a buffer. The view keeps the buffer alive, and all
// elements are inside the buffer. Copying a view copies handles. A view holds
// the buffer, so a Tensor with the same buffer copies before writing.
//
// The elements, in row-major order, form runs: contiguous bytes of the buffer,
// as long as the strides allow.
class StridedView {
 public:
  // Makes a view. The element at index i is at byte `offset` plus the sum of
  // i[d] * strides[d]. Strides are in bytes. They may be negative, zero (which
  // repeats elements), or not a multiple of the element size. The stride of a
  // dimension of size 0 or 1 is ignored.
  //
  // Returns INVALID_ARGUMENT, with the reason, for a shape that ByteSize()
  // refuses, a number of strides that differs from the number of dimensions, a
  // null buffer, or an element outside the buffer. Returns FAILED_PRECONDITION
  // for a buffer on a device.
  static absl::StatusOr<StridedView> Create(DType dtype, Shape shape,
                                            absl::Span<const int64_t> strides,
                                            std::shared_ptr<Buffer> buffer,
                                            size_t offset = 0);

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }

  // Returns the size of all elements as a packed tensor, in bytes. May exceed
  // the size of the buffer if a stride is zero.
  size_t byte_size() const { return byte_size_; }

  // Return the length of each run in bytes, and the number of runs. A view
  // without bytes has no runs.
  size_t run_bytes() const { return run_bytes_; }
  size_t num_runs() const {
    return byte_size_ == 0 ? 0 : byte_size_ / run_bytes_;
  }

  // Appends each run, in order, as a slice of the buffer. Copies only runs of a
  // few bytes, which gRPC keeps in the slice itself.
  void AppendRuns(std::vector<grpc::Slice>* slices) const;

  // Returns a copy of the elements as a tensor, in memory of `allocator`; null
  // selects DefaultAllocator(). Returns the allocator's RESOURCE_EXHAUSTED.
  absl::StatusOr<Tensor> Pack(Allocator* allocator = nullptr) const;

 private:
  struct Axis {
    int64_t size;
    int64_t stride;  // bytes
  };

  StridedView() = default;
  bool IsInside(absl::Span<const int64_t> strides) const;
  void Normalize(absl::Span<const int64_t> strides);
  template <typename Visit>
  void ForEachRow(const Visit& visit) const;

  DType dtype_ = DType::kF32;
  Shape shape_;
  std::shared_ptr<Buffer> buffer_;
  size_t offset_ = 0;  // of the first element
  size_t byte_size_ = 0;
  // The dimensions between runs, outermost first. Omits axes of size 1, and
  // merges axes that are contiguous in memory.
  std::vector<Axis> axes_;
  size_t run_bytes_ = 0;
};

struct NamedView {
  std::string name;  // UTF-8
  StridedView view;
};

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_STRIDED_H_
