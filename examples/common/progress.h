// Prints and parses the lines by which workers report their progress to the
// process that started them.

#ifndef PENSTOCK_EXAMPLES_COMMON_PROGRESS_H_
#define PENSTOCK_EXAMPLES_COMMON_PROGRESS_H_

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace penstock::examples {

struct Progress {
  unsigned step = 0;  // steps done
  double loss = 0;    // mean of the last steps
};

using OnProgress = std::function<void(unsigned step, double loss)>;

// Prints a line every 25 steps: "step <steps done> <mean loss of these>".
class ProgressPrinter {
 public:
  void Add(uint64_t steps_done, double loss);

 private:
  double sum_ = 0;
  unsigned summed_ = 0;
};

// Parses a line of ProgressPrinter. Returns INTERNAL, with the line, for any
// other text.
absl::StatusOr<Progress> ReadProgress(absl::string_view line);

}  // namespace penstock::examples

#endif  // PENSTOCK_EXAMPLES_COMMON_PROGRESS_H_
