// What Python's class Tensor is made of.

#ifndef PENSTOCK_PYTHON_TENSOR_OBJECT_H_
#define PENSTOCK_PYTHON_TENSOR_OBJECT_H_

#include <memory>

#include "absl/status/status.h"
#include "tensor_service/allocator.h"
#include "tensor_service/tensor.h"

namespace penstock::python {

// Returns the allocator of the transport's pool, from which tensors are sent
// without a copy.
tensor::Allocator* Pool();

// A tensor and the NumPy arrays that show its memory. Copies are other tensors,
// which share the memory until one is written to. Guarded by the GIL.
class TensorObject {
 public:
  explicit TensorObject(tensor::Tensor tensor);
  // Runs RunPending(): the memory may have been a Python object's.
  ~TensorObject();
  TensorObject(const TensorObject& other) : TensorObject(other.get()) {}
  TensorObject& operator=(const TensorObject&) = delete;

  const tensor::Tensor& get() const { return *shared_; }

  // Returns a share for an array that shows the memory. All arrays of this
  // object have the same one, until the object gets other memory.
  std::shared_ptr<const tensor::Tensor> Share() const { return shared_; }

  // Returns whether the memory may be written to: it lies on the host, and
  // nothing but this object and its arrays uses it. In a forked child the
  // parent does.
  bool IsWritable() const;

  // Makes sure that it IsWritable(). Otherwise gives the object a copy in the
  // pool. Arrays that were made before then show what the object had before.
  absl::Status MakeWritable();

  // Gives the object other memory, of the same type and shape.
  void Replace(tensor::Tensor tensor);

 private:
  std::shared_ptr<const tensor::Tensor> shared_;  // never null
};

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_TENSOR_OBJECT_H_
