// Remembers which steps have ended, and the reasons.

#ifndef PENSTOCK_TENSOR_SERVICE_ENDED_STEPS_H_
#define PENSTOCK_TENSOR_SERVICE_ENDED_STEPS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>

#include "absl/status/status.h"

namespace penstock::tensor {

// Remembers the last `capacity` steps that have ended. When full, forgets the
// step that ended first, instead of the step with the lowest number. Step
// numbers may be random, and a peer that ends a step with a high number must
// not affect all lower ones. Not thread-safe.
class EndedSteps {
 public:
  // Caps the stored length of a reason's message, in bytes.
  static constexpr size_t kMaxReasonBytes = 512;

  // Truncates the message to kMaxReasonBytes, without splitting a character.
  static absl::Status Shortened(const absl::Status& reason);

  explicit EndedSteps(size_t capacity) : capacity_(capacity) {}

  // End one step, or all steps permanently. Only the first end counts.
  void End(uint64_t step, const absl::Status& reason);
  void EndAll(const absl::Status& reason);

  // Returns the reason if the step is known to have ended, and otherwise OK.
  absl::Status Check(uint64_t step) const;

 private:
  const size_t capacity_;
  std::unordered_map<uint64_t, absl::Status> reasons_;
  std::deque<uint64_t> order_;  // the step that ended first is at the front
  absl::Status all_;
};

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_ENDED_STEPS_H_
