// Explains errors in a command line.

#ifndef PENSTOCK_TRANSPORT_BASE_FLAG_ERRORS_H_
#define PENSTOCK_TRANSPORT_BASE_FLAG_ERRORS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace penstock {
namespace base {

// Returns the element of `known` that is most similar to `text`. Returns "" if
// none is similar enough.
std::string Nearest(absl::string_view text,
                    const std::vector<std::string>& known);

// Returns a text saying that there is no flag `word` ("--quik", or "--quik=1"),
// with the similar flag of `known` ("--quick") if there is one.
std::string UnknownFlag(absl::string_view word,
                        const std::vector<std::string>& known);

// Returns an error text for the first word of the form "--name=", or "" if
// there is no such word. A script with an unset variable produces "--name=".
// Without this check, a parser may take the next word for the flag's value.
std::string FlagWithoutValue(const std::vector<std::string>& words);

}  // namespace base
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_BASE_FLAG_ERRORS_H_
