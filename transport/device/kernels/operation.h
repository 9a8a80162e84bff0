// The operations and element types, for the host's compiler and for CUDA's.

#ifndef PENSTOCK_TRANSPORT_DEVICE_KERNELS_OPERATION_H_
#define PENSTOCK_TRANSPORT_DEVICE_KERNELS_OPERATION_H_

namespace penstock::device::kernels {

enum class Operation {
  // output = inputs[0] + inputs[1] + ..., added in this order in f32. The
  // result is rounded to the element type once, at the end.
  kSum,
  // The sum, before rounding to the element type, times 1/n. Both 1/n and the
  // product are rounded to f32.
  kMean,
  // output = output + scale * inputs[0]. The product is rounded to f32, then
  // the sum to f32, then the result to the element type.
  kScaledAdd,
};

enum class ElementType { kF32, kF16, kBf16 };

}  // namespace penstock::device::kernels

#endif  // PENSTOCK_TRANSPORT_DEVICE_KERNELS_OPERATION_H_
