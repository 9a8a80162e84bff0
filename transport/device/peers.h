// Direct access between devices.

#ifndef PENSTOCK_TRANSPORT_DEVICE_PEERS_H_
#define PENSTOCK_TRANSPORT_DEVICE_PEERS_H_

#include <set>

#include "absl/base/thread_annotations.h"
#include "transport/base/mutex.h"
#include "transport/device/device.h"

namespace penstock {
namespace device {

// The other devices to which a device can write directly, without a copy
// through the host. Thread-safe.
class Peers {
 public:
  // Refers to `device`, which must outlive this object.
  explicit Peers(Device* device) : device_(device) {}
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  // Enables direct access to `other`, if the machine allows it. Asks the driver
  // once for each `other`. Ignores a failure: the driver then copies through
  // the host, which is slower.
  void Reach(Device* other);

 private:
  Device* const device_;
  base::Mutex mu_;  // held during calls of the driver
  std::set<Device*> asked_ ABSL_GUARDED_BY(mu_);
};

}  // namespace device
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_DEVICE_PEERS_H_
