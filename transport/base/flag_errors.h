// Explains to people what is wrong with a command line.

#ifndef PENSTOCK_TRANSPORT_BASE_FLAG_ERRORS_H_
#define PENSTOCK_TRANSPORT_BASE_FLAG_ERRORS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace penstock {
namespace base {

// Returns the one of `known` that is most like `text`, if any is alike enough
// to be what was meant; else "".
std::string Nearest(absl::string_view text,
                    const std::vector<std::string>& known);

// Says that there is no flag `word` ("--quik", or "--quik=1"), and which of
// `known` ("--quick") is meant perhaps.
std::string UnknownFlag(absl::string_view word,
                        const std::vector<std::string>& known);

// Returns what is wrong with the first word of the form "--name=", of which a
// script has not set the value; "" if there is none. A parser may take the next
// word for the value.
std::string FlagWithoutValue(const std::vector<std::string>& words);

}  // namespace base
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_BASE_FLAG_ERRORS_H_
