// Reductions by chance, and what they must give.

#ifndef PENSTOCK_TESTS_TRANSPORT_DEVICE_KERNELS_CASES_H_
#define PENSTOCK_TESTS_TRANSPORT_DEVICE_KERNELS_CASES_H_

#include <cstdint>
#include <ostream>
#include <vector>

#include "tests/transport/device/kernels/arrays.h"
#include "transport/device/kernels/reduction.h"

namespace penstock::device::kernels {

// A reduction of arrays that it owns, which are aligned alike or not. In a
// third of all cases the output is one of the inputs.
class Case {
 public:
  explicit Case(Random* random);
  Case(const Case&) = delete;
  Case& operator=(const Case&) = delete;

  const Reduction& reduction() const { return reduction_; }

  // The bits of each element of the output, computed from what the arrays have
  // now, by reference.h.
  std::vector<uint32_t> Expected() const;

  // What the output has now.
  std::vector<uint32_t> Output() const;

  // Whether nothing but the output has been written to.
  bool NothingElseWasWritten() const;

 private:
  uint32_t ExpectedAt(uint64_t index) const;

  Reduction reduction_;
  std::vector<Array> arrays_;  // the inputs, and an output
  size_t output_;              // of arrays_
  std::vector<const void*> inputs_;
  std::vector<std::vector<uint32_t>> before_;  // of each array
};

std::ostream& operator<<(std::ostream& out, const Case& one);

}  // namespace penstock::device::kernels

#endif  // PENSTOCK_TESTS_TRANSPORT_DEVICE_KERNELS_CASES_H_
