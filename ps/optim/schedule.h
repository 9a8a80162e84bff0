// The learning rate of each step, as a pure function.

#ifndef PENSTOCK_PS_OPTIM_SCHEDULE_H_
#define PENSTOCK_PS_OPTIM_SCHEDULE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace penstock::ps::optim {

// A learning rate as a function of the step. The first step is 1.
//
// Each kind begins with a warm-up: step i of the first `warm_up_steps` steps
// has the rate learning_rate * i / warm_up_steps. The formulas below count
// steps from the end of the warm-up.
struct Schedule {
  enum class Kind {
    // learning_rate
    kConstant,
    // learning_rate * factor ^ floor((step - 1) / every)
    kStep,
    // Half a cosine from learning_rate at step 1 to final_rate at step `every`;
    // constant afterwards (Loshchilov and Hutter, ICLR 2017, without restarts).
    kCosine,
  };

  Kind kind = Kind::kConstant;
  double learning_rate = 0.01;
  uint64_t warm_up_steps = 0;
  uint64_t every = 0;     // steps; kStep and kCosine
  double factor = 0.1;    // kStep; at most 1
  double final_rate = 0;  // kCosine

  // Returns the learning rate of `step`. Step 0 has the rate of step 1.
  double RateOf(uint64_t step) const;

  // Returns OK if learning_rate is positive, no rate is negative or above 1e30,
  // and the fields that the kind needs are set. Otherwise returns
  // INVALID_ARGUMENT, which names the field. Ignores fields that the kind does
  // not use.
  absl::Status Check() const;
};

// Returns the name of a kind: "constant", "step" or "cosine".
absl::string_view Name(Schedule::Kind kind);

}  // namespace penstock::ps::optim

#endif  // PENSTOCK_PS_OPTIM_SCHEDULE_H_
