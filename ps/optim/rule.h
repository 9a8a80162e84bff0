// The training rules.

#ifndef PENSTOCK_PS_OPTIM_RULE_H_
#define PENSTOCK_PS_OPTIM_RULE_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace penstock::ps::optim {

// The rules. In the formulas, g is the gradient, w the value and r the learning
// rate; formulas apply to each element. Where frameworks differ, the rules
// follow PyTorch.
enum class Rule {
  kSgd,       // w -= r g
  kMomentum,  // b = mu b + g;  w -= r b
  kNesterov,  // b = mu b + g;  w -= r (g + mu b)
  kAdagrad,   // a += g^2;  w -= r g / (sqrt(a) + eps)
  kRmsProp,   // a = d a + (1 - d) g^2;  w -= r g / (sqrt(a) + eps)
  // Adam by Kingma and Ba, ICLR 2015, at step t:
  kAdam,
  kAdamW,  // Loshchilov and Hutter, ICLR 2019: w *= 1 - r decay;  then Adam
  // McMahan et al., KDD 2013, algorithm 1; r is its alpha:
  //   s = (sqrt(n + g^2) - sqrt(n)) / r;  z += g - s w;  n += g^2
  //   w = (sign(z) l1 - z) / ((beta + sqrt(n)) / r + l2);  0 where |z| <= l1
  // Each step computes w from z and n alone. An initial w matters only in the
  // first step, by the term s w.
  kFtrl,
};

inline constexpr size_t kMostSlots = 2;

// Returns the name of a rule: "sgd", "momentum", "nesterov", "adagrad",
// "rmsprop", "adam", "adamw" or "ftrl".
absl::string_view Name(Rule rule);

// Returns the rule of that name, or INVALID_ARGUMENT with a list of the names.
absl::StatusOr<Rule> RuleNamed(absl::string_view name);

}  // namespace penstock::ps::optim

#endif  // PENSTOCK_PS_OPTIM_RULE_H_
