// Identifies the running kernel.

#ifndef PENSTOCK_TRANSPORT_BASE_HOST_ID_H_
#define PENSTOCK_TRANSPORT_BASE_HOST_ID_H_

#include <string>

namespace penstock {
namespace base {

// Returns the kernel's boot id, by which processes find out if they run on the
// same kernel, even in containers. Host names are not unique. Empty if /proc
// hides the id; an empty id differs from every other id. Thread-safe.
const std::string& HostId();

}  // namespace base
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_BASE_HOST_ID_H_
