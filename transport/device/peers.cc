#include "transport/device/peers.h"

namespace penstock {
namespace device {

void Peers::Reach(Device* other) {
  if (other == device_) return;
  base::MutexLock lock(&mu_);
  if (!asked_.insert(other).second) return;
  const auto entered = device_->Enter();
  if (!entered.ok()) return;
  Api* const api = device_->api();
  int can = 0;
  // Ignores an error. If the device is lost, Check() has recorded it.
  if (!device_
           ->Check(api->DeviceCanAccessPeer(&can, device_->id(), other->id()),
                   "ask which devices it reaches")
           .ok() ||
      can == 0) {
    return;
  }
  // Ignores errors, because the program may have enabled the access before.
  (void)device_->Check(api->CtxEnablePeerAccess(other->context(), 0),
                       "reach another device");
}

}  // namespace device
}  // namespace penstock
