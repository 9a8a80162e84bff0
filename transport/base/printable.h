// Text of others, made safe for people's eyes.

#ifndef PENSTOCK_TRANSPORT_BASE_PRINTABLE_H_
#define PENSTOCK_TRANSPORT_BASE_PRINTABLE_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace penstock {
namespace base {

// `text` in one line of printable ASCII: any other byte becomes \xNN, so it
// neither forges a line nor speaks to a terminal. At most `max_bytes`, of which
// the last three are dots where there was more. Twice is the same as once.
std::string Printable(absl::string_view text, size_t max_bytes);

}  // namespace base
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_BASE_PRINTABLE_H_
