#include "ps/optim/rule.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace penstock::ps::optim {
namespace {

struct Named {
  Rule rule;
  const char* name;
};
constexpr Named kRules[] = {
    {Rule::kSgd, "sgd"},           {Rule::kMomentum, "momentum"},
    {Rule::kNesterov, "nesterov"}, {Rule::kAdagrad, "adagrad"},
    {Rule::kRmsProp, "rmsprop"},   {Rule::kAdam, "adam"},
    {Rule::kAdamW, "adamw"},       {Rule::kFtrl, "ftrl"},
};

}  // namespace

absl::string_view Name(Rule rule) {
  for (const Named& known : kRules) {
    if (known.rule == rule) return known.name;
  }
  return "unknown";
}

absl::StatusOr<Rule> RuleNamed(absl::string_view name) {
  std::string names;
  for (const Named& known : kRules) {
    if (known.name == name) return known.rule;
    absl::StrAppend(&names, names.empty() ? "" : ", ", known.name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("no optimizer is called '", name, "'; there are ", names));
}

}  // namespace penstock::ps::optim
