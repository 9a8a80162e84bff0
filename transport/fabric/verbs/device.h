// Finds this machine's addresses on RDMA devices, and chooses among them.

#ifndef PENSTOCK_TRANSPORT_FABRIC_VERBS_DEVICE_H_
#define PENSTOCK_TRANSPORT_FABRIC_VERBS_DEVICE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "transport/fabric/verbs/cm_channel.h"
#include "transport/fabric/verbs/formats/address.h"
#include "transport/fabric/verbs/handles.h"
#include "transport/fabric/verbs/options.h"

namespace penstock {
namespace fabric {
namespace verbs {

// An identifier that is bound to an address of a device.
struct BoundId {
  CmId id;
  Address address;  // with its port
};

// Binds an identifier to each address that `options` allow. Uses the port of
// `options`; otherwise the address's port in `known`, if that port is free.
// Returns at least one identifier, or NOT_FOUND with a list of the existing
// addresses. Returns ALREADY_EXISTS if the port of `options` is taken, and
// PERMISSION_DENIED if this process may not use the port.
absl::StatusOr<std::vector<BoundId>> BindToDevices(
    Api* api, CmChannel* channel, const Options& options,
    const std::vector<Address>& known = {});

// Returns true if `options` name an address, a device, a port or a GID.
bool IsRestricted(const Options& options);

// Applies `options` to an identifier. Call it before connecting or accepting.
absl::Status SetIdOptions(Api* api, rdma_cm_id* id, const Options& options);

// Returns "rxe0/1, RoCE v2, mtu 4096" for an identifier that has a device.
std::string DescribeDevice(Api* api, const rdma_cm_id& id);

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_DEVICE_H_
