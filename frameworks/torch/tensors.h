// Tensors of PyTorch as the elements that collective operations take.

#ifndef PENSTOCK_FRAMEWORKS_TORCH_TENSORS_H_
#define PENSTOCK_FRAMEWORKS_TORCH_TENSORS_H_

#include <cstdint>
#include <vector>

#include "collectives/reduction/reduction.h"
#include "frameworks/torch/torch_headers.h"
#include "tensor_service/dtype.h"

namespace penstock {
namespace pytorch {

struct Elements {
  tensor::DType dtype;
  int64_t count;
};

// Returns the elements of a tensor whose values an operation only copies.
// Treats types that Penstock does not know as bytes.
Elements Moved(const at::Tensor& tensor);

struct Reduction {
  collectives::ReduceOp op;
  tensor::DType dtype;
  // Elements of Penstock for each element of the tensor: 2 for complex numbers.
  int64_t width;
};

// Returns the reduction for tensors of this type. Throws if there is none.
// Complex numbers count as pairs. The sum of bools is "or", their product is
// "and".
Reduction ReductionOf(const char* operation, const c10d::ReduceOp& op,
                      const at::Tensor& tensor);

// Throws unless the tensor is dense and on the CPU.
void CheckTensor(const char* operation, const at::Tensor& tensor);
// Returns the single tensor of the list. Throws as CheckTensor().
const at::Tensor& OnlyTensor(const char* operation,
                             const std::vector<at::Tensor>& tensors);
// Throws unless the list has `count` tensors with the type and number of
// elements of `like`.
void CheckList(const char* operation, const std::vector<at::Tensor>& tensors,
               size_t count, const at::Tensor& like);
// Throws unless `large` has `times` the elements of `small`, of the same type.
void CheckTimes(const char* operation, const at::Tensor& large,
                const at::Tensor& small, int64_t times);

// Returns true if the two share bytes.
bool Overlap(const at::Tensor& a, const at::Tensor& b);

// The elements of a tensor in the order of its indices, without gaps. Uses the
// tensor's memory if its layout is the same, and otherwise a copy.
class Packed {
 public:
  explicit Packed(const at::Tensor& tensor);

  void* data() const { return packed_.data_ptr(); }
  const at::Tensor& tensor() const { return packed_; }
  // Writes the elements back to the tensor, if they are a copy.
  void Unpack() const;

 private:
  const at::Tensor& tensor_;
  const at::Tensor packed_;
};

// One tensor for the elements of several equal tensors, concatenated.
class Flat {
 public:
  // Uses the tensors in place if they are adjacent and none of them overlaps
  // `other`, the other side of the operation.
  Flat(const std::vector<at::Tensor>& tensors, const at::Tensor& other);

  void* data() const { return flat_.data_ptr(); }
  // Copy from the tensors, and to them.
  void Pack() const;
  void Unpack() const;

 private:
  at::Tensor Part(size_t index) const;

  const std::vector<at::Tensor>& tensors_;
  const bool in_place_;
  at::Tensor flat_;
};

}  // namespace pytorch
}  // namespace penstock

#endif  // PENSTOCK_FRAMEWORKS_TORCH_TENSORS_H_
