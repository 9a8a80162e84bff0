// The results of a round of one contender.

#ifndef PENSTOCK_BENCH_PS_TRAINING_FIGURES_H_
#define PENSTOCK_BENCH_PS_TRAINING_FIGURES_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace penstock::bench {

// The median times of a round, in seconds. 0 if the contender does not measure
// the figure.
struct Figures {
  double pull = 0;  // until all values have arrived
  // The time of `pull`, plus the time until all values are tensors and have
  // been read.
  double read = 0;
  double push = 0;  // until the push is acknowledged
  // The time from the end of one pull to the end of the next one: values are
  // read, gradients are pushed and applied, and the new values arrive.
  double step = 0;
  double cpu = 0;  // CPU time of a step: of all threads of worker and server
};

struct FigureName {
  absl::string_view name;
  double Figures::*figure;
};
inline constexpr FigureName kFigures[] = {{"pull", &Figures::pull},
                                          {"read", &Figures::read},
                                          {"push", &Figures::push},
                                          {"step", &Figures::step},
                                          {"cpu", &Figures::cpu}};

// Convert figures to a line of text for the parent process, and back; see
// child_process.h.
std::string ToLine(const Figures& figures);
absl::StatusOr<Figures> FiguresFromLine(absl::string_view line);

}  // namespace penstock::bench

#endif  // PENSTOCK_BENCH_PS_TRAINING_FIGURES_H_
