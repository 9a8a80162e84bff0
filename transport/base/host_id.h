// Identifies the running kernel.

#ifndef PENSTOCK_TRANSPORT_BASE_HOST_ID_H_
#define PENSTOCK_TRANSPORT_BASE_HOST_ID_H_

#include <string>

namespace penstock {
namespace base {

// Returns the kernel's boot id. Two processes with the same id run on the same
// kernel, even in different containers. Host names are not unique. Returns ""
// if /proc hides the id; an empty id counts as different from every other id.
// Thread-safe.
const std::string& HostId();

}  // namespace base
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_BASE_HOST_ID_H_
