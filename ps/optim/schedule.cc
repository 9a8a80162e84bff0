#include "ps/optim/schedule.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "ps/optim/range.h"

namespace penstock::ps::optim {
namespace {

constexpr double kPi = 3.14159265358979323846;

// The upper bound of a learning rate. Adam's correction may multiply a rate by
// 10^7, and the product must fit into an f32.
constexpr double kLargestRate = 1e30;

}  // namespace

double Schedule::RateOf(uint64_t step) const {
  step = std::max<uint64_t>(step, 1);
  if (step <= warm_up_steps) {
    return learning_rate *
           (static_cast<double>(step) / static_cast<double>(warm_up_steps));
  }
  const uint64_t done = step - warm_up_steps - 1;
  switch (kind) {
    case Kind::kConstant:
      break;
    case Kind::kStep: {
      const uint64_t times = done / every;
      return learning_rate * std::pow(factor, static_cast<double>(times));
    }
    case Kind::kCosine: {
      if (done >= every) return final_rate;
      const double part =
          static_cast<double>(done) / static_cast<double>(every);
      return final_rate +
             (learning_rate - final_rate) / 2 * (1 + std::cos(kPi * part));
    }
  }
  return learning_rate;
}

absl::Status Schedule::Check() const {
  absl::Status status =
      CheckRange("learning_rate", learning_rate, kSmallestF32, kLargestRate);
  if (!status.ok()) return status;
  if (kind != Kind::kConstant && every == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "every is 0: a ", Name(kind), " schedule needs a number of steps"));
  }
  switch (kind) {
    case Kind::kConstant:
      return absl::OkStatus();
    case Kind::kStep:
      return CheckRange("factor", factor, 0, 1);
    case Kind::kCosine:
      return CheckRange("final_rate", final_rate, 0, kLargestRate);
  }
  return absl::InvalidArgumentError("kind is none of the known schedules");
}

absl::string_view Name(Schedule::Kind kind) {
  switch (kind) {
    case Schedule::Kind::kConstant:
      return "constant";
    case Schedule::Kind::kStep:
      return "step";
    case Schedule::Kind::kCosine:
      return "cosine";
  }
  return "unknown";
}

}  // namespace penstock::ps::optim
