// Truncates texts of peers for error messages.

#ifndef PENSTOCK_TENSOR_SERVICE_TEXT_H_
#define PENSTOCK_TENSOR_SERVICE_TEXT_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace penstock::tensor {

// Returns the first `most` bytes of `text`, or up to three fewer, to avoid
// splitting a UTF-8 character.
absl::string_view Prefix(absl::string_view text, size_t most);

// Returns a name for an error message: the whole name if it has at most 200
// bytes, and otherwise its beginning and "...". A longer name would displace
// the reason that follows; see ToGrpc().
std::string Quoted(absl::string_view name);

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_TEXT_H_
