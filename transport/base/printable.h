// Makes text from elsewhere safe to print.

#ifndef PENSTOCK_TRANSPORT_BASE_PRINTABLE_H_
#define PENSTOCK_TRANSPORT_BASE_PRINTABLE_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace penstock {
namespace base {

// Returns `text` as one line of printable ASCII, of at most `max_bytes`. Any
// other byte becomes \xNN, so that the text cannot forge a log line or control
// a terminal. A text that is cut ends in three dots. Idempotent.
std::string Printable(absl::string_view text, size_t max_bytes);

}  // namespace base
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_BASE_PRINTABLE_H_
