// Lists words in a sentence.

#ifndef PENSTOCK_TRANSPORT_BASE_JOIN_WORDS_H_
#define PENSTOCK_TRANSPORT_BASE_JOIN_WORDS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace penstock {
namespace base {

// Returns "red, green or blue" if `last` is "or". Needs two words or more.
std::string JoinWords(absl::Span<const absl::string_view> words,
                      absl::string_view last);

}  // namespace base
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_BASE_JOIN_WORDS_H_
