// Delays the release of message memory that is dropped under a lock until the
// lock is released.

#ifndef PENSTOCK_TRANSPORT_RPC_GUARDED_H_
#define PENSTOCK_TRANSPORT_RPC_GUARDED_H_

#include <memory>

#include "transport/connection/late_release.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace rpc {

using LateOwners = connection::LateRelease<std::shared_ptr<const void>>;

// Returns the same bytes with new owners, which are released by
// LateOwners::Drop().
memory::Payload Guarded(const memory::Payload& payload);

}  // namespace rpc
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_RPC_GUARDED_H_
