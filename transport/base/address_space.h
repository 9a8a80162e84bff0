// Describes a lack of address space, so that its message names the limit.

#ifndef PENSTOCK_TRANSPORT_BASE_ADDRESS_SPACE_H_
#define PENSTOCK_TRANSPORT_BASE_ADDRESS_SPACE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace penstock {
namespace base {

// Returns the process's limit of address space (RLIMIT_AS) with its remedy, or
// "" if there is no limit.
std::string AddressSpaceLimitText();

// Returns true if RLIMIT_AS leaves no room for `bytes` more. pthread_create()
// has the same error number for this case as for too many threads.
bool ExceedsAddressSpace(uint64_t bytes);

// Returns the RESOURCE_EXHAUSTED of an `operation` that got no `bytes` of
// address space, with the limit that it met and the remedy.
absl::Status NoAddressSpace(absl::string_view operation, uint64_t bytes);

}  // namespace base
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_BASE_ADDRESS_SPACE_H_
