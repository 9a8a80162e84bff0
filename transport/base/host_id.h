// Identifies the running kernel.

#ifndef PENSTOCK_TRANSPORT_BASE_HOST_ID_H_
#define PENSTOCK_TRANSPORT_BASE_HOST_ID_H_

#include <string>

namespace penstock {
namespace base {

// Returns the kernel's boot id. Two processes have the same id only if they run
// on the same kernel, even in containers; host names may coincide. Empty if
// /proc hides the id: treat an empty id as different from every other.
// Thread-safe.
const std::string& HostId();

}  // namespace base
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_BASE_HOST_ID_H_
