// A reduction to be done on a device or on the host.

#ifndef PENSTOCK_TRANSPORT_DEVICE_KERNELS_REDUCTION_H_
#define PENSTOCK_TRANSPORT_DEVICE_KERNELS_REDUCTION_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "transport/device/kernels/operation.h"

namespace penstock::device::kernels {

// The arguments of a reduction. All arrays have `count` elements of `type`. The
// arrays are in the memory of the host, or of the device that computes the
// reduction. Each address is aligned to the size of an element. The output is
// one of the inputs, or overlaps none of them.
struct Reduction {
  Operation operation = Operation::kSum;
  ElementType type = ElementType::kF32;
  uint64_t count = 0;
  // The input arrays: 1 to kMaxFanIn, or exactly one for a scaled add. A longer
  // sum needs several reductions, each of which rounds to `type`.
  absl::Span<const void* const> inputs;
  void* output = nullptr;
  float scale = 1;  // of a scaled add
};

// Returns the bytes of an element.
size_t ElementBytes(ElementType type);

// Returns the factor of the product, rounded to f32: `scale`, or 1/n for a mean
// of n inputs.
float ScaleOf(const Reduction& reduction);

// Returns INVALID_ARGUMENT if the reduction violates the rules above. Checks
// addresses, and never reads memory.
absl::Status Check(const Reduction& reduction);

}  // namespace penstock::device::kernels

#endif  // PENSTOCK_TRANSPORT_DEVICE_KERNELS_REDUCTION_H_
