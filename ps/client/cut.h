// Compares and prints the cuts in the servers' messages.

#ifndef PENSTOCK_PS_CLIENT_CUT_H_
#define PENSTOCK_PS_CLIENT_CUT_H_

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "ps/wire/ps.pb.h"

namespace penstock::ps {

// Returns true if both messages have the same cut, or if neither has one.
template <typename Message, typename Other>
bool SameCut(const Message& one, const Other& other) {
  return one.has_cut() == other.has_cut() &&
         one.cut().step() == other.cut().step() &&
         one.cut().id() == other.cut().id();
}

// The run of a training, and the checkpoint with which the run began.
struct RunAndCut {
  uint64_t run = 0;
  absl::optional<v1::Cut> cut;  // nullopt: none
};

// Returns true if the message's cut is a checkpoint that the run `before`
// wrote, or the checkpoint with which `before` began. A run that begins with
// such a cut continues the same training.
template <typename Message>
bool Continues(const Message& message, const RunAndCut& before) {
  if (!message.has_cut()) return false;
  const v1::Cut& cut = message.cut();
  if (cut.run() == before.run) return true;
  return before.cut.has_value() && cut.step() == before.cut->step() &&
         cut.id() == before.cut->id();
}

// Returns true if the message's cut belongs to the training of `before`, even
// after any number of restarts. The run that wrote the cut is then
// `before.run`, the run whose checkpoint `before` began with, or a later run
// that continues one of them. The cut may lack pushes of `before`.
template <typename Message>
bool Descends(const Message& message, const RunAndCut& before) {
  const v1::Cut& cut = message.cut();
  const auto& earlier = cut.earlier_runs();
  const auto led_to_cut = [&](uint64_t run) {
    return run != 0 &&
           (run == cut.run() ||
            std::find(earlier.begin(), earlier.end(), run) != earlier.end());
  };
  return Continues(message, before) || led_to_cut(before.run) ||
         (before.cut.has_value() && led_to_cut(before.cut->run()));
}

// Returns "step 60 (cut 1f2e)" or "no checkpoint", for people.
template <typename Message>
std::string CutText(const Message& message) {
  if (!message.has_cut()) return "no checkpoint";
  return absl::StrCat("step ", message.cut().step(), " (cut ",
                      absl::Hex(message.cut().id()), ")");
}

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CLIENT_CUT_H_
