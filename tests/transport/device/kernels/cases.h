// Random reductions, with their expected results.

#ifndef PENSTOCK_TESTS_TRANSPORT_DEVICE_KERNELS_CASES_H_
#define PENSTOCK_TESTS_TRANSPORT_DEVICE_KERNELS_CASES_H_

#include <cstdint>
#include <ostream>
#include <vector>

#include "tests/transport/device/kernels/arrays.h"
#include "transport/device/kernels/reduction.h"

namespace penstock::device::kernels {

// A reduction of arrays that this object owns. The arrays have equal or
// different alignment. In a third of all cases, the output is one of the
// inputs.
class Case {
 public:
  explicit Case(Random* random);
  Case(const Case&) = delete;
  Case& operator=(const Case&) = delete;

  const Reduction& reduction() const { return reduction_; }

  // Returns the expected bits of each output element, computed from the arrays'
  // current contents by reference.h.
  std::vector<uint32_t> Expected() const;

  // Returns the current bits of the output.
  std::vector<uint32_t> Output() const;

  // Returns true if only the output was written.
  bool NothingElseWasWritten() const;

 private:
  uint32_t ExpectedAt(uint64_t index) const;

  Reduction reduction_;
  std::vector<Array> arrays_;  // the inputs, and an output
  size_t output_;              // the output's index in arrays_
  std::vector<const void*> inputs_;
  std::vector<std::vector<uint32_t>> before_;  // copies of all arrays
};

std::ostream& operator<<(std::ostream& out, const Case& one);

}  // namespace penstock::device::kernels

#endif  // PENSTOCK_TESTS_TRANSPORT_DEVICE_KERNELS_CASES_H_
