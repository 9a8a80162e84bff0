// Which running kernel this is.

#ifndef PENSTOCK_TRANSPORT_BASE_HOST_ID_H_
#define PENSTOCK_TRANSPORT_BASE_HOST_ID_H_

#include <string>

namespace penstock {
namespace base {

// The kernel's boot id: equal for two processes only if they run on one kernel,
// in containers too; unlike a host name it cannot be shared by accident. Empty
// where /proc hides it; an empty id equals no other.
const std::string& HostId();

}  // namespace base
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_BASE_HOST_ID_H_
