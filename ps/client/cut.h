// Compares and prints the cuts in the servers' messages.

#ifndef PENSTOCK_PS_CLIENT_CUT_H_
#define PENSTOCK_PS_CLIENT_CUT_H_

#include <string>

#include "absl/strings/str_cat.h"

namespace penstock::ps {

// Returns true if both messages have the same cut, or if neither has one.
template <typename Message, typename Other>
bool SameCut(const Message& one, const Other& other) {
  return one.has_cut() == other.has_cut() &&
         one.cut().step() == other.cut().step() &&
         one.cut().id() == other.cut().id();
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
