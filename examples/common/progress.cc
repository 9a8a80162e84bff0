#include "examples/common/progress.h"

#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace penstock::examples {
namespace {

constexpr unsigned kStepsOfALine = 25;

}  // namespace

void ProgressPrinter::Add(uint64_t steps_done, double loss) {
  sum_ += loss;
  if (++summed_ < kStepsOfALine) return;
  printf("step %llu %.9g\n", static_cast<unsigned long long>(steps_done),
         sum_ / summed_);
  fflush(stdout);
  sum_ = 0;
  summed_ = 0;
}

absl::StatusOr<Progress> ReadProgress(absl::string_view line) {
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
  Progress progress;
  if (words.size() == 3 && words[0] == "step" &&
      absl::SimpleAtoi(words[1], &progress.step) &&
      absl::SimpleAtod(words[2], &progress.loss)) {
    return progress;
  }
  return absl::InternalError(absl::StrCat(
      "a worker said \"", line, "\", which is not \"step STEPS LOSS\""));
}

}  // namespace penstock::examples
