// Cuts texts of peers to what an error message can hold.

#ifndef PENSTOCK_TENSOR_SERVICE_TEXT_H_
#define PENSTOCK_TENSOR_SERVICE_TEXT_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace penstock::tensor {

// Returns the first `most` bytes of `text`, or up to three fewer, so that no
// character of UTF-8 is cut in two.
absl::string_view Prefix(absl::string_view text, size_t most);

// Returns a name as error messages quote it: whole if it has up to 200 bytes,
// and else its beginning and "...". A longer one would displace the reason,
// which follows it; see ToGrpc().
std::string Quoted(absl::string_view name);

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_TEXT_H_
