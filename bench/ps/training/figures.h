// What a round of one contender says.

#ifndef PENSTOCK_BENCH_PS_TRAINING_FIGURES_H_
#define PENSTOCK_BENCH_PS_TRAINING_FIGURES_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace penstock::bench {

// Medians of a round, in seconds. 0: this contender does not do that.
struct Figures {
  double pull = 0;  // until all values are here
  double read = 0;  // the same, and until each is a tensor, and all is read
  double push = 0;  // until the push is acknowledged
  // From one pull's end to the next one's: values are read, gradients pushed
  // and applied, and the values that come of it are there.
  double step = 0;
  double cpu = 0;  // of such a step: of all threads of worker and server
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

// For the way from a child process; see child_process.h.
std::string ToLine(const Figures& figures);
absl::StatusOr<Figures> FiguresFromLine(absl::string_view line);

}  // namespace penstock::bench

#endif  // PENSTOCK_BENCH_PS_TRAINING_FIGURES_H_
