// Which of this machine's addresses lie on RDMA devices, and which of these are
// to be used.

#ifndef PENSTOCK_TRANSPORT_FABRIC_VERBS_DEVICE_H_
#define PENSTOCK_TRANSPORT_FABRIC_VERBS_DEVICE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "transport/fabric/verbs/address.h"
#include "transport/fabric/verbs/cm_channel.h"
#include "transport/fabric/verbs/handles.h"
#include "transport/fabric/verbs/options.h"

namespace penstock {
namespace fabric {
namespace verbs {

// An identifier that is bound to an address of a device.
struct BoundId {
  CmId id;
  Address address;  // with the port that it got
};

// One for each address that `options` allow; at least one, with the port that
// it has in `known`, if it is there and the port is free. NOT_FOUND says what
// there is instead.
absl::StatusOr<std::vector<BoundId>> BindToDevices(
    Api* api, CmChannel* channel, const Options& options,
    const std::vector<Address>& known = {});

// Whether `options` name an address or a device, or a port or a GID of one.
bool IsRestricted(const Options& options);

// What options say of every identifier, before it is connected or accepted.
absl::Status SetIdOptions(Api* api, rdma_cm_id* id, const Options& options);

// "rxe0/1, RoCE v2, mtu 4096" of an identifier that has a device.
std::string DescribeDevice(Api* api, const rdma_cm_id& id);

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_DEVICE_H_
