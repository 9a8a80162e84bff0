// What can be computed, and of what. For the host's compiler and for CUDA's.

#ifndef PENSTOCK_TRANSPORT_DEVICE_KERNELS_OPERATION_H_
#define PENSTOCK_TRANSPORT_DEVICE_KERNELS_OPERATION_H_

namespace penstock::device::kernels {

enum class Operation {
  // output = inputs[0] + inputs[1] + ..., added in this order in f32, and
  // rounded to the type of the elements at the end.
  kSum,
  // The sum, before it is rounded, times 1/n, which is rounded to f32 as is the
  // product.
  kMean,
  // output = output + scale * inputs[0]: the product is rounded to f32, the sum
  // to f32, and that to the type of the elements.
  kScaledAdd,
};

enum class ElementType { kF32, kF16, kBf16 };

}  // namespace penstock::device::kernels

#endif  // PENSTOCK_TRANSPORT_DEVICE_KERNELS_OPERATION_H_
