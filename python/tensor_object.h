// The C++ object behind Python's class Tensor.

#ifndef PENSTOCK_PYTHON_TENSOR_OBJECT_H_
#define PENSTOCK_PYTHON_TENSOR_OBJECT_H_

#include <memory>

#include "absl/status/status.h"
#include "tensor_service/allocator.h"
#include "tensor_service/tensor.h"

namespace penstock::python {

// Returns the allocator of the transport's pool. Tensors in the pool are sent
// without a copy.
tensor::Allocator* Pool();

// A tensor and the NumPy arrays that show its memory. A copy is another tensor
// that shares the memory until one of the two is written to. Guarded by the
// GIL.
class TensorObject {
 public:
  explicit TensorObject(tensor::Tensor tensor);
  // Runs RunPending(), because the memory may belong to a Python object.
  ~TensorObject();
  TensorObject(const TensorObject& other) : TensorObject(other.get()) {}
  TensorObject& operator=(const TensorObject&) = delete;

  const tensor::Tensor& get() const { return *shared_; }

  // Returns a handle that keeps the memory alive, for an array that shows it.
  // All arrays of this object share one handle, until the object gets other
  // memory.
  std::shared_ptr<const tensor::Tensor> Share() const { return shared_; }

  // Returns true if the memory may be written to: if it is on the host, and
  // only this object and its arrays use it. Returns false in a forked child for
  // memory of the parent.
  bool IsWritable() const;

  // Makes the tensor writable. If it is not, replaces its memory by a copy in
  // the pool. Existing arrays then still show the old memory.
  absl::Status MakeWritable();

  // Replaces the object's memory by that of `tensor`, which has the same type
  // and shape.
  void Replace(tensor::Tensor tensor);

 private:
  std::shared_ptr<const tensor::Tensor> shared_;  // never null
};

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_TENSOR_OBJECT_H_
