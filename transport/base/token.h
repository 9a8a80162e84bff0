// One-time secrets.

#ifndef PENSTOCK_TRANSPORT_BASE_TOKEN_H_
#define PENSTOCK_TRANSPORT_BASE_TOKEN_H_

#include <string>

#include "absl/status/statusor.h"

namespace penstock {
namespace base {

constexpr int kTokenBytes = 16;

// Returns kTokenBytes bytes from the kernel's random source, or an error of
// getrandom(). Thread-safe.
absl::StatusOr<std::string> NewToken();

}  // namespace base
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_BASE_TOKEN_H_
