// Which steps have ended, and why.

#ifndef PENSTOCK_TENSOR_SERVICE_ENDED_STEPS_H_
#define PENSTOCK_TENSOR_SERVICE_ENDED_STEPS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>

#include "absl/status/status.h"

namespace penstock::tensor {

// Remembers the last `capacity` steps that have ended. Forgets the one that
// ended first, not the lowest: steps may be random numbers, so a peer that ends
// a high one must not end all below it. Not thread-safe.
class EndedSteps {
 public:
  // The most of a reason's message that is kept. In bytes.
  static constexpr size_t kMaxReasonBytes = 512;

  // Cuts the message to kMaxReasonBytes, and no character in two.
  static absl::Status Shortened(const absl::Status& reason);

  explicit EndedSteps(size_t capacity) : capacity_(capacity) {}

  // Ends a step, or all steps for good. The first end counts.
  void End(uint64_t step, const absl::Status& reason);
  void EndAll(const absl::Status& reason);

  // Returns OK if the step goes on as far as is known, and else the reason.
  absl::Status Check(uint64_t step) const;

 private:
  const size_t capacity_;
  std::unordered_map<uint64_t, absl::Status> reasons_;
  std::deque<uint64_t> order_;  // the step that ended first is at the front
  absl::Status all_;
};

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_ENDED_STEPS_H_
