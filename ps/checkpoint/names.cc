#include "ps/checkpoint/names.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"

namespace penstock::ps::checkpoint {
namespace {

constexpr char kAsidePrefix[] = "aside-";

}  // namespace

std::string StepFolder(uint64_t step) {
  return absl::StrFormat("step-%010d", step);
}

absl::optional<uint64_t> ParseStepFolder(absl::string_view name) {
  absl::string_view digits = name;
  uint64_t step = 0;
  // Accepts only names that StepFolder() can return: no sign, no space, and no
  // leading zeros beyond the padding to ten digits.
  if (!absl::ConsumePrefix(&digits, "step-") ||
      !absl::SimpleAtoi(digits, &step) || StepFolder(step) != name) {
    return absl::nullopt;
  }
  return step;
}

std::string AsideFolder(uint64_t step, int number) {
  return absl::StrFormat("%s%010d-%d", kAsidePrefix, step, number);
}

bool IsAsideFolder(absl::string_view name) {
  return absl::StartsWith(name, kAsidePrefix);
}

std::string ManifestPath(uint64_t step) {
  return absl::StrCat(StepFolder(step), "/", kManifestName);
}

std::string NewManifestPath(uint64_t step, uint64_t id) {
  return absl::StrFormat("%s/%s-%016x.new", StepFolder(step), kManifestName,
                         id);
}

std::string ShardName(uint32_t shard, uint64_t id) {
  return absl::StrFormat("shard-%05d-%016x", shard, id);
}

std::string ShardPath(uint64_t step, uint32_t shard, uint64_t id) {
  return absl::StrCat(StepFolder(step), "/", ShardName(shard, id));
}

}  // namespace penstock::ps::checkpoint
