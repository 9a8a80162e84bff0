// A secret that is used once.

#ifndef PENSTOCK_TRANSPORT_BASE_TOKEN_H_
#define PENSTOCK_TRANSPORT_BASE_TOKEN_H_

#include <string>

#include "absl/status/statusor.h"

namespace penstock {
namespace base {

constexpr int kTokenBytes = 16;

// kTokenBytes bytes from the kernel's random source.
absl::StatusOr<std::string> NewToken();

}  // namespace base
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_BASE_TOKEN_H_
